// Cards of pictures: canvas, readout, and what changes the look of it.
const byId = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [key, given] of Object.entries(attributes)) {
    if (key === "text") e.textContent = given;
    else if (key.startsWith("on")) e.addEventListener(key.slice(2), given);
    else if (given === true) e.setAttribute(key, "");
    else if (given !== false && given !== undefined) e.setAttribute(key, given);
  }
  e.append(...children);
  return e;
}

// `x [m]` as its name and its unit.
function split(text) {
  const found = /^(.*?)\s*\[(.*)\]$/.exec(text || "");
  return found ? [found[1], found[2]] : [text || "", ""];
}

// Frame of a curve in the form in which rows are drawn too.
function curveOf(frame, log) {
  const { head, values } = frame;
  const [x, y] = head.labels.map(split);
  const part = (k) => values.subarray(k * head.nx, (k + 1) * head.nx);
  const lines = head.lines.map((name, k) => ({ name: split(name)[0], values: part(k + 1) }));
  return { x: part(0), lines, labels: [x[0], y[0]], units: [x[1], y[1]], log };
}

const download = (blob, name) => {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};

// A card that draws itself when it is seen, as often as the screen shows it at most.
class Card {
  constructor(parent, title, className = "card") {
    this.title = element("h2");
    this.rename(title);
    this.canvas = element("canvas", { tabindex: 0, role: "img", "aria-label": title });
    this.read = element("div", { class: "read", "aria-live": "off" });
    this.large = false;
    this.seen = false;
    this.cursor = null;
    const enlarge = element("button", { text: "\u2922", title: "Larger or smaller", "aria-label": "Larger or smaller", onclick: () => { this.large = !this.large; this.box.classList.toggle("large", this.large); this.redraw(); } });
    const save = element("button", { text: "PNG", title: "Download this picture", onclick: () => this.png() });
    this.top = element("div", { class: "top" }, this.title, save, enlarge);
    this.box = element("article", { class: className }, this.top, this.canvas, this.read);
    parent.append(this.box);
    this.canvas.addEventListener("pointermove", (e) => this.point(e.offsetX, e.offsetY));
    this.canvas.addEventListener("pointerdown", (e) => this.point(e.offsetX, e.offsetY));
    this.canvas.addEventListener("pointerleave", () => { this.cursor = null; this.show(); });
    this.canvas.addEventListener("keydown", (e) => this.key(e));
    SEEN.observe(this.box);
    RESIZED.observe(this.box);
    CARDS.set(this.box, this);
  }

  rename(title) {
    if (this.title.title === title) return;
    this.title.title = title;
    this.title.replaceChildren(...parts(title).map((part) => (part.below ? element("sub", { text: part.text }) : part.text)));
  }

  redraw() {
    if (this.waiting || !this.seen) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  draw() {
    const width = this.canvas.clientWidth;
    if (!width || this.box.hidden) return;
    this.drawn = this.paint(this.canvas, width, this.large, Math.min(devicePixelRatio || 1, 2));
    this.show();
  }

  // Place under the pointer, in the room of the plot.
  point(x, y) {
    if (!this.drawn) return;
    const rooms = this.drawn.layers || [this.drawn.room];
    const layer = rooms.findIndex((r) => x >= r.left && x <= r.left + r.width && y >= r.top && y <= r.top + r.height);
    this.cursor = layer < 0 ? null : [(x - rooms[layer].left) / rooms[layer].width, (y - rooms[layer].top) / rooms[layer].height, layer];
    this.show();
  }

  key(event) {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!move || !this.drawn) return;
    event.preventDefault();
    event.stopPropagation();
    const [u, v, layer] = this.cursor || [0.5, 0.5, 0], by = event.shiftKey ? 10 : 1, inside = (t) => Math.max(0, Math.min(0.9999, t));
    this.cursor = [inside(u + (by * move[0]) / this.drawn.cells[0]), inside(v + (by * move[1]) / this.drawn.cells[1]), layer];
    this.show();
  }

  show() {
    this.read.textContent = this.cursor && this.drawn ? this.drawn.read(...this.cursor) : this.caption || "\u00a0";
  }

  // The picture with its title, twice as fine.
  png() {
    const width = Math.max(600, this.canvas.clientWidth), inner = document.createElement("canvas");
    this.paint(inner, width, true, 2);
    const whole = element("canvas", { width: inner.width, height: inner.height + 64 }), c = whole.getContext("2d"), colours = theme();
    c.fillStyle = colours.card; c.fillRect(0, 0, whole.width, whole.height);
    c.fillStyle = colours.ink; c.font = "600 30px system-ui, sans-serif"; c.textBaseline = "middle";
    label(c, [this.title.title, this.caption].filter((t) => t && t.trim()).join(" \u2013 "), 24, 34, "left");
    c.drawImage(inner, 0, 64);
    whole.toBlob((blob) => download(blob, `${state.run.name || "zellige"}_${this.file}.png`));
    this.redraw();
  }
}

const CARDS = new Map();
const SEEN = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const card = CARDS.get(entry.target);
    card.seen = entry.isIntersecting;
    if (card.seen) { card.redraw(); card.wanted?.(); }
  }
}, { rootMargin: "150px" });
const RESIZED = new ResizeObserver((entries) => entries.forEach((entry) => CARDS.get(entry.target).redraw()));

// Card of a picture of the run.
class Picture extends Card {
  constructor(number, head) {
    super(byId("pictures"), head.title);
    this.number = number;
    this.file = head.name;
    this.kind = head.kind;
    this.frames = [];
    this.frame = null;
    this.look = { log: head.log, map: "", low: null, high: null, part: "both" };
    this.tools = element("div", { class: "tools" });
    this.box.append(this.tools);
    if (head.kind !== "wave") this.tools.append(this.check("log", "log"));
    if (head.kind === "image") {
      this.tools.append(this.choice("map", "colours", [["", "own colours"], ...Object.keys(MAPS).map((m) => [m, m])]), this.end("low", "from"), this.end("high", "to"));
      this.hold = element("button", { text: "hold range", title: "Keep the range of this moment", "aria-pressed": "false", onclick: () => this.keepRange() });
      this.tools.append(this.hold);
    } else if (head.kind === "wave") {
      this.tools.append(this.choice("part", "shown", [["both", "amplitude and phase"], ["amplitude", "amplitude"], ["phase", "phase"]]));
    }
  }

  check(key, text) {
    const box = element("input", { type: "checkbox", onchange: () => { this.look[key] = box.checked; this.redraw(); } });
    box.checked = this.look[key];
    return element("label", {}, box, text);
  }

  choice(key, name, options) {
    const select = element("select", { "aria-label": name, onchange: () => { this.look[key] = select.value; this.redraw(); } }, ...options.map(([v, text]) => element("option", { value: v, text })));
    return select;
  }

  end(key, name) {
    const box = element("input", { type: "text", inputmode: "decimal", placeholder: "auto", "aria-label": `range ${name}`, onchange: () => {
      const number = parseFloat(box.value);
      this.look[key] = Number.isFinite(number) ? number : null;
      this.redraw();
    } });
    this[key] = box;
    return element("label", {}, name, box);
  }

  keepRange() {
    const held = this.look.low !== null || this.look.high !== null;
    if (held || !this.frame) { this.look.low = this.look.high = null; this.low.value = this.high.value = ""; }
    else {
      const { low, high } = fieldScale(this.frame, this.look);
      [this.look.low, this.look.high] = [low, high];
      [this.low.value, this.high.value] = [low, high].map((v) => String(+v.toPrecision(4)));
    }
    this.redraw();
  }

  // Takes a frame and shows it.
  take(frame) {
    this.frame = frame;
    const { head } = frame;
    this.rename(head.title);
    const reduced = head.kind !== "curve" && (head.full[0] > head.nx || head.full[1] > head.ny);
    const size = head.kind === "curve" ? "" : `${head.full[0]} \u00d7 ${head.full[1]}${reduced ? `, shown as ${head.nx} \u00d7 ${head.ny}` : ""}`;
    this.caption = [momentText(head.step, head.time), size].filter(Boolean).join("; ");
    this.redraw();
  }

  paint(canvas, width, large, ratio) {
    const { frame, look } = this;
    if (!frame) return null;
    this.hold?.setAttribute("aria-pressed", String(look.low !== null || look.high !== null));
    if (this.kind === "curve") return drawCurve(canvas, curveOf(frame, look.log), width, large, ratio);
    if (this.kind === "wave") return drawWave(canvas, frame, look, width, large, ratio);
    return drawField(canvas, frame, look, outlinesFor(frame.head), width, large, ratio);
  }
}
