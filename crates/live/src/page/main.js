// State of the page, news from the run, moments, commands.
// The page as it was served, from before anything in it changes: what is saved is made of it.
const SOURCE = `<!doctype html>\n${document.documentElement.outerHTML}`;
const state = { run: {}, pictures: [], outlines: new Map(), moments: [], shown: null, progress: null, stages: [], notices: [], end: null, over: false };
const cache = new Map();
const CACHE_BYTES = 256 * 2 ** 20, RING = 200;
let cached = 0, playing = null, events = null;

const TOKEN = location.pathname.split("/")[1] || "";
const momentText = (step, time) => `${state.run.step || "step"} ${whole(step)}${time === null || time === undefined ? "" : `, t = ${figure(time, 5)}`}`;
const outlinesFor = (head) => [...state.outlines.values()].filter(() => head.labels[0] === "x" && head.labels[1] === "y");

// Frames of a response: a description in JSON, then numbers.
function parse(buffer) {
  const frames = [], view = new DataView(buffer);
  for (let at = 0; at < buffer.byteLength; ) {
    const length = view.getUint32(at, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, at + 4, length)));
    frames.push({ id: head.id, head, values: new Float32Array(buffer, at + 4 + length, head.bytes / 4) });
    at += 4 + length + head.bytes;
  }
  return frames;
}

function keepFrame(frame) {
  if (cache.has(frame.id)) return;
  cache.set(frame.id, frame);
  cached += frame.values.byteLength;
  for (const [id, old] of cache) {
    if (cached <= CACHE_BYTES) break;
    cache.delete(id);
    cached -= old.values.byteLength;
  }
}

// Takes a frame from the server: outlines are drawn over others.
function take(frame) {
  keepFrame(frame);
  if (frame.head.kind === "outline") {
    state.outlines.set(frame.head.name, frame);
    state.pictures.forEach((p) => p?.kind === "image" && p.redraw());
    return;
  }
  state.pictures[frame.head.picture]?.take(frame);
}

// Frame of a picture at the moment shown.
function idAt(picture) {
  if (state.shown === null) return picture.frames.at(-1)?.[0];
  return (picture.frames.findLast(([, step]) => step <= state.shown) || picture.frames[0])?.[0];
}

let fetching = false;
// Brings what is seen up to the moment shown, one request at a time: a slow line gets fewer frames, not later ones.
async function refresh() {
  if (fetching) return;
  fetching = true;
  try {
    for (let again = true; again; ) {
      again = false;
      const seen = state.pictures.filter((p) => p && (p.seen || p.kind === "outline") && !p.box?.hidden && p.frames.length);
      // A response may be ahead of the list of frames: what is newer than asked for is the newest.
      const upToDate = (p) => (state.shown === null ? (p.frame?.id || 0) >= idAt(p) : p.frame?.id === idAt(p));
      const missing = seen.filter((p) => (p.kind === "outline" ? !p.had : !upToDate(p)));
      for (const p of missing) if (cache.has(idAt(p))) { take(cache.get(idAt(p))); p.had = true; }
      const absent = missing.filter((p) => !cache.has(idAt(p)));
      if (!absent.length || SAVED || state.lost) break;
      let response;
      if (state.shown === null) response = await fetch(`frames?of=${absent.map((p) => `${p.number}:${p.frame?.id || 0}`).join(",")}`);
      else response = await fetch(`frame/${idAt(absent[0])}`);
      if (response.status === 404) { absent[0].frames = absent[0].frames.filter(([id]) => id !== idAt(absent[0])); again = true; continue; }
      if (!response.ok) break;
      const frames = parse(await response.arrayBuffer());
      frames.forEach((frame) => { take(frame); const p = state.pictures[frame.head.picture]; if (p) p.had = true; });
      again = frames.length > 0;
    }
  } catch { /* the stream of events tells that the run has gone */ }
  fetching = false;
}

function takeFrames(news) {
  news.pictures.forEach((head, k) => {
    if (state.pictures[k] || !head) return;
    if (head.kind === "outline") { state.pictures[k] = { kind: "outline", number: k, frames: [], seen: true }; return; }
    const picture = (state.pictures[k] = new Picture(k, head));
    picture.wanted = refresh;
    byId("chips").append(element("button", { text: head.name, title: head.title, "aria-pressed": "true", onclick: (e) => {
      picture.box.hidden = !picture.box.hidden;
      e.target.setAttribute("aria-pressed", String(!picture.box.hidden));
      refresh();
    } }));
  });
  for (const [id, k, step, time] of news.frames) {
    const picture = state.pictures[k];
    picture.frames.push([id, step, time]);
    if (picture.frames.length > RING) picture.frames.shift();
    if (picture.kind !== "outline") {
      const last = state.moments.at(-1);
      if (!last || last[0] < step) state.moments.push([step, time]);
    }
  }
  const first = Math.min(...state.pictures.filter((p) => p && p.kind !== "outline" && p.frames.length).map((p) => p.frames[0][1]));
  state.moments = state.moments.filter(([step]) => step >= first);
  byId("empty").hidden = state.pictures.some((p) => p && p.kind !== "outline");
  byId("chips").hidden = state.pictures.length < 2;
}

function showTime() {
  const count = state.moments.length, slider = byId("scrub");
  byId("time").hidden = count < 2;
  if (!count) return;
  slider.max = count - 1;
  const at = state.shown === null ? count - 1 : Math.max(0, state.moments.findLastIndex(([step]) => step <= state.shown));
  slider.value = at;
  byId("moment").textContent = momentText(...state.moments[at]);
  byId("newest").setAttribute("aria-pressed", String(state.shown === null));
}

// Shows a moment by its number; the last one follows the run.
function go(number) {
  const last = state.moments.length - 1;
  state.shown = number >= last ? null : state.moments[Math.max(0, number)][0];
  showTime();
  refresh();
}

function play(on) {
  clearInterval(playing);
  playing = null;
  if (on && state.moments.length > 1) {
    if (state.shown === null) go(0);
    playing = setInterval(() => { if (+byId("scrub").value + 1 >= state.moments.length - 1) play(false); go(+byId("scrub").value + 1); }, 120);
  }
  byId("play").innerHTML = playing ? "&#10074;&#10074;" : "&#9654;";
}

const STATUS = { run: ["running", "run"], finished: ["finished", "run"], limited: ["ended at its limits", "warn"], failed: ["failed", "bad"], stopped: ["stopped", "warn"] };

function showHead() {
  const { run, progress, end } = state;
  byId("name").textContent = run.name || "zellige";
  byId("what").textContent = [run.solver, run.device].filter(Boolean).join(" on ");
  const [word, kind] = end ? STATUS[end[0]] || [end[0], ""] : SAVED ? ["saved", ""] : state.lost ? ["connection lost", "bad"] : state.rests ? ["between calls", ""] : progress ? STATUS.run : ["starting", ""];
  byId("status").textContent = word;
  byId("status").className = `pill ${kind}`;
  byId("status").title = end ? end[1] : "";
  // Nobody answers any more.
  byId("commands").querySelectorAll("button").forEach((b) => (b.disabled = Boolean(end || state.lost)));
  document.title = `${progress && !end ? `${Math.floor(100 * progress.fraction)} % ` : ""}${run.name || "zellige"}`;
  const figures = [];
  if (progress) {
    byId("done").style.width = `${100 * Math.min(1, progress.fraction)}%`;
    byId("done").parentElement.setAttribute("aria-valuenow", Math.round(100 * progress.fraction));
    figures.push([run.step || "step", whole(progress.step)]);
    if (progress.time !== null) figures.push(["t", figure(progress.time, 5)]);
    figures.push(["done", `${(100 * progress.fraction).toFixed(1)} %`], ["elapsed", seconds(progress.wall)]);
    if (!end && !state.rests && progress.left !== null) figures.push(["left", seconds(progress.left)]);
    if (progress.rate) figures.push([`${run.item || "item"}s/s`, figure(progress.rate, 3)]);
  }
  if (end) figures.push(["end", end[1]]);
  byId("figures").replaceChildren(...figures.map(([name, text]) => element("div", {}, element("dt", { text: name }), element("dd", { text }))));
  byId("done").parentElement.hidden = !progress;
}

function showStages() {
  const stages = state.stages.filter((s) => s.calls).sort((a, b) => b.own - a.own), most = stages[0]?.percent || 1;
  byId("stages-box").hidden = !stages.length;
  const line = (s) => element("tr", {}, element("td", { text: s.name }), element("td", {}, share(s.percent, most)), element("td", { text: seconds(s.total) }), element("td", { text: whole(s.calls) }), element("td", { text: seconds(s.average) }), element("td", { text: s.gb_per_s === null ? "\u2013" : figure(s.gb_per_s, 3) }));
  byId("stages").tBodies[0].replaceChildren(...stages.map(line));
}

function share(percent, most) {
  const bar = element("i");
  bar.style.width = `${(70 * percent) / most}%`;
  return element("div", { class: "share" }, bar, element("span", { text: `${percent.toFixed(1)} %` }));
}

function showRun() {
  const { plan = [], warnings = [], commands = [], section, folder, version } = state.run;
  byId("plan-box").hidden = !plan.length;
  const lines = [...plan, ...(folder ? [["folder", folder]] : []), ...(version ? [["zellige", version]] : [])];
  byId("plan").replaceChildren(...lines.flatMap(([name, text]) => [element("dt", { text: name }), element("dd", { text })]));
  warnings.forEach((text) => notice(`warning: ${text}`));
  const words = { save: ["Save checkpoint", "Save the state; the run goes on"], next: [`Next ${section || "section"}`, `Go on to the next ${section || "section"} now`], stop: ["Save and stop", "Save the state and end the run; `zellige run --resume` goes on from it"] };
  const button = (c) => element("button", { id: `command-${c}`, text: words[c][0], title: words[c][1], class: c === "stop" ? "grave" : "", onclick: () => command(c, words[c][0]) });
  byId("commands").replaceChildren(...(SAVED ? [] : commands.map(button)));
  byId("keep").hidden = Boolean(SAVED);
}

async function command(name, text) {
  if (name !== "save" && !confirm(`${text}?`)) return;
  try {
    const response = await fetch(name, { method: "POST", headers: { "X-Zellige-Token": TOKEN } });
    notice(response.ok ? `asked: ${text.toLowerCase()}${state.rests ? ", which the next call will do" : ""}` : `refused: ${text.toLowerCase()} (${response.status})`);
  } catch { notice(`not sent: ${text.toLowerCase()}; the run cannot be reached`); }
}

function notice(text) {
  state.notices.push(text);
  byId("notices-box").hidden = false;
  byId("notices").append(element("li", { text }));
  byId("notices").scrollTop = 1e6;
}

// Takes news of the run, whole ones or what has changed.
function news(told) {
  if (told.run) {
    Object.assign(state, { run: told.run, moments: [], notices: [] });
    state.pictures.forEach((p) => p && (p.frames = []));
    byId("notices").replaceChildren();
    showRun();
  }
  if (told.progress) state.progress = told.progress;
  if (told.end) state.end = told.end;
  state.rests = Boolean(told.rests);
  if (told.stages && JSON.stringify(told.stages) !== JSON.stringify(state.stages)) { state.stages = told.stages; showStages(); }
  if (told.rows) takeRows(told.rows);
  if (told.frames) { takeFrames(told); showTime(); }
  told.notices?.forEach(notice);
  showHead();
  refresh();
}

function connect() {
  if (events || SAVED) return;
  events = new EventSource("events");
  events.onmessage = (event) => { state.lost = false; news(JSON.parse(event.data)); };
  events.onerror = () => {
    // A run that has ended does not come back.
    state.lost = true;
    if (state.end) { disconnect(); forget(); }
    else showHead();
  };
}

// What was not fetched is gone with the run: only moments that are here can be shown.
function forget() {
  const kept = new Set();
  for (const p of state.pictures.filter((p) => p && p.kind !== "outline")) {
    p.frames = p.frames.filter(([id]) => cache.has(id));
    p.frames.forEach(([, step]) => kept.add(step));
  }
  state.moments = state.moments.filter(([step]) => kept.has(step));
  showTime();
}

function disconnect() {
  events?.close();
  events = null;
}

// The page with all rows and the frames shown, as one file.
async function keepPage() {
  const shown = [...state.pictures.filter((p) => p?.frame).map((p) => p.frame), ...state.outlines.values()];
  for (const p of state.pictures.filter((p) => p && p.kind !== "outline" && !p.frame && p.frames.length)) {
    try { const r = await fetch(`frame/${idAt(p)}`); if (r.ok) shown.push(...parse(await r.arrayBuffer())); } catch { /* those at hand are kept */ }
  }
  const encode = (values) => { const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength); let text = ""; for (let i = 0; i < bytes.length; i += 8190) text += btoa(String.fromCharCode(...bytes.subarray(i, i + 8190))); return text; };
  const heads = [];
  shown.forEach(({ head }) => (heads[head.picture] = head));
  const saved = {
    run: { ...state.run, commands: [] }, progress: state.progress, stages: state.stages, end: state.end, notices: state.notices, rows: allRows(),
    pictures: Array.from(heads, (h) => h || null), frames: shown.map(({ id, head }) => [id, head.picture, head.step, head.time]).sort((a, b) => a[0] - b[0]),
    data: shown.map(({ head, values }) => ({ head, values: encode(values) })),
  };
  const text = JSON.stringify(saved).replace(/</g, "\\u003c");
  // The first place where it stands is its declaration.
  const [before, ...after] = SOURCE.split(/const SAVED = null;/);
  download(new Blob([before, "const SAVED = ", text, ";", after.join("const SAVED = null;")], { type: "text/html" }), `${state.run.name || "zellige"}_${state.progress?.step ?? 0}.html`);
}

// A page that was saved: its frames are in it.
function openSaved() {
  for (const { head, values } of SAVED.data) {
    const bytes = Uint8Array.from(atob(values), (c) => c.charCodeAt(0));
    keepFrame({ id: head.id, head, values: new Float32Array(bytes.buffer) });
  }
  news(SAVED);
}

byId("keep").addEventListener("click", keepPage);
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = theme().dark ? "light" : "dark";
  CARDS.forEach((card) => card.redraw());
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => CARDS.forEach((card) => card.redraw()));
byId("scrub").addEventListener("input", (event) => { play(false); go(+event.target.value); });
byId("newest").addEventListener("click", () => { play(false); go(Infinity); });
byId("play").addEventListener("click", () => play(!playing));
document.addEventListener("keydown", (event) => {
  if (/^(INPUT|SELECT|TEXTAREA|BUTTON)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey || state.moments.length < 2) return;
  const at = +byId("scrub").value;
  const act = { " ": () => play(!playing), ArrowLeft: () => go(at - 1), ArrowRight: () => go(at + 1), Home: () => go(0), End: () => go(Infinity) }[event.key];
  if (act) { event.preventDefault(); if (event.key !== " ") play(false); act(); }
});
// A page that nobody sees asks for nothing.
document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : state.end || connect()));
if (SAVED) openSaved(); else connect();
showHead();
