// The list of the runs of a queue. Texts of runs go into text nodes only.
const el = (id) => document.getElementById(id);
const node = (name, text, kind) => Object.assign(document.createElement(name), { textContent: text ?? "", className: kind || "" });
const period = (s) => s == null ? "" : s < 60 ? `${s.toFixed(s < 10 ? 1 : 0)} s` : s < 3600 ? `${Math.floor(s / 60)} min ${Math.round(s % 60)} s` : `${Math.floor(s / 3600)} h ${Math.round(s % 3600 / 60)} min`;
const LOOKS = { running: "run", failed: "bad", stopped: "warn", "not begun": "warn" };

function line(run, number) {
  const row = node("tr"), cell = (...content) => { const td = node("td"); td.append(...content); row.append(td); };
  const name = node(run.page ? "a" : "span", run.name);
  if (run.page) name.href = `${number}/`;
  cell(name);
  cell(node("span", run.state, `pill ${LOOKS[run.state] || ""}`));
  cell(run.device);
  const bar = node("div", "", "bar"), done = node("div"), f = run.fraction;
  done.style.width = `${100 * (f ?? 0)}%`;
  bar.title = f == null ? "" : `${(100 * f).toFixed(1)} %`;
  bar.append(done);
  cell(bar);
  cell(run.state === "running" && f > 0.005 ? period(run.seconds * (1 - f) / f) : "");
  cell(period(run.seconds));
  cell(run.message);
  return row;
}

function show({ title, runs }) {
  document.title = el("title").textContent = title;
  const states = {};
  runs.forEach(({ state }) => (states[state] = (states[state] || 0) + 1));
  el("counts").textContent = Object.entries(states).map(([state, n]) => `${n} ${state}`).join(", ");
  el("runs").replaceChildren(...runs.map(line));
  const over = !states.waiting && !states.running;
  el("status").textContent = over ? "over" : "at work";
  el("status").className = over ? "pill" : "pill run";
  return over;
}

let over = false;
const events = new EventSource("events");
events.onmessage = (event) => { over = show(JSON.parse(event.data)); };
events.onerror = () => {
  if (over) events.close();
  else { el("status").textContent = "no connection"; el("status").className = "pill bad"; }
};
