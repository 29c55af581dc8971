// Drawing on canvas: fields through tables of colours, complex waves, curves.
const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const LINES = ["#20639b", "#d1603d", "#3c9d6b", "#8a5fb5", "#b58b1e", "#4a9fb5", "#b5477f", "#6b6f76"];
const LINES_DARK = ["#6fb1e6", "#f0936f", "#75cf9f", "#bd9ae6", "#e0bd5a", "#7fcfe0", "#e68ab9", "#a5abb5"];

// Colours of the page, which follow its theme.
function theme() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(name).trim();
  const dark = parseInt(get("--card").slice(1, 3), 16) < 128;
  return { ink: get("--ink"), soft: get("--soft"), card: get("--card"), line: get("--line"), grid: get("--grid"), missing: get("--missing"), lines: dark ? LINES_DARK : LINES, dark };
}

// Writes a label with its subscripts; its width.
function label(c, text, x, y, align = "center") {
  const all = parts(text), plain = c.font, small = plain.replace(/[\d.]+px/, (size) => `${0.76 * parseFloat(size)}px`);
  const widths = all.map((part) => { c.font = part.below ? small : plain; return c.measureText(part.text).width; });
  const whole = widths.reduce((a, b) => a + b, 0);
  let left = x - (align === "center" ? whole / 2 : align === "right" ? whole : 0);
  c.textAlign = "left";
  all.forEach((part, k) => { c.font = part.below ? small : plain; c.fillText(part.text, left, y + (part.below ? 4 : 0)); left += widths[k]; });
  c.font = plain;
  return whole;
}

const SHADES = {}, TABLES = {};
// Bytes of the 256 colours of a map: every fourth and the last are in the page.
function shades(name) {
  if (!SHADES[name]) {
    const all = new Uint8Array(768), at = (k, c) => parseInt(MAPS[name].slice(6 * k + 2 * c, 6 * k + 2 * c + 2), 16);
    for (let i = 0; i < 256; i++) {
      const k = i >> 2, t = (i - 4 * k) / (k < 63 ? 4 : 3);
      for (let c = 0; c < 3; c++) all[3 * i + c] = Math.round(at(k, c) * (1 - t) + at(k + 1, c) * t);
    }
    SHADES[name] = all;
  }
  return SHADES[name];
}
const opaque = (r, g, b) => (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
// The same as numbers that a raster of bytes takes.
function table(name) {
  const rgb = shades(name);
  return (TABLES[name] ??= Uint32Array.from({ length: 256 }, (_, i) => opaque(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2])));
}
const packed = (hex) => { const n = parseInt(hex.slice(1), 16); return opaque(n >> 16, (n >> 8) & 255, n & 255); };

// The least and largest finite value, and the least positive one.
function extremes(values) {
  let low = Infinity, high = -Infinity, positive = Infinity;
  for (let i = 0; i < values.length; i++) {
    const v = values[i];
    if (v - v !== 0) continue;
    if (v < low) low = v;
    if (v > high) high = v;
    if (v > 0 && v < positive) positive = v;
  }
  return { low, high, positive };
}

// Scale of a field: its ends, map, and places between them.
function fieldScale(frame, look) {
  const { head, values } = frame;
  const diverging = head.palette === "Diverging";
  frame.range ??= extremes(values);
  let { low, high, positive } = frame.range;
  const log = look.log;
  const absolute = log && low < 0;
  if (log) {
    high = Math.max(Math.abs(low), high);
    if (absolute) { positive = Infinity; for (const v of values) { const a = Math.abs(v); if (a > 0 && a < positive) positive = a; } }
    low = Math.max(positive, high * 1e-8);
  } else if (diverging) {
    high = Math.max(Math.abs(low), Math.abs(high));
    low = -high;
  } else if (head.palette === "Cyclic") {
    low = -Math.PI; high = Math.PI;
  }
  if (look.low !== null) low = look.low;
  if (look.high !== null) high = look.high;
  if (!(low < high)) {
    const room = low === high && low !== 0 ? Math.abs(low) * 0.01 : 1;
    if (Number.isFinite(low)) { if (log) { high = low * 10; } else { low -= room; high = low + 2 * room; } } else { low = log ? 1 : 0; high = log ? 10 : 1; }
  }
  if (log && low <= 0) low = high * 1e-8;
  const map = look.map || (diverging && !absolute && !log ? "balance" : head.palette === "Cyclic" ? "cyclic" : "viridis");
  return { low, high, log, absolute, map, place: log ? (v) => Math.log(v / low) / Math.log(high / low) : (v) => (v - low) / (high - low) };
}

const RASTER = document.createElement("canvas");
// The values as colours, on a raster of one pixel each.
function paintField(frame, scale, colours) {
  const { head: { nx, ny, palette }, values } = frame;
  RASTER.width = nx; RASTER.height = ny;
  const context = RASTER.getContext("2d");
  const image = context.createImageData(nx, ny);
  const pixels = new Uint32Array(image.data.buffer);
  const colour = table(scale.map);
  const missing = palette === "Density" ? 0 : packed(colours.missing);
  const { low, high, log, absolute } = scale;
  const factor = log ? 255 / Math.log(high / low) : 255 / (high - low);
  for (let i = 0; i < values.length; i++) {
    let v = values[i];
    if (absolute) v = Math.abs(v);
    if (v - v !== 0 || (log && v <= 0)) { pixels[i] = missing; continue; }
    const t = log ? Math.log(v / low) * factor : (v - low) * factor;
    pixels[i] = colour[t <= 0 ? 0 : t >= 255 ? 255 : (t + 0.5) | 0];
  }
  context.putImageData(image, 0, 0);
  return RASTER;
}

// One layer of a wave: phase as hue and modulus as brightness, or one of them alone.
function paintWave(frame, layer, brightest, look) {
  const { head: { nx, ny }, values } = frame;
  RASTER.width = nx; RASTER.height = ny;
  const context = RASTER.getContext("2d");
  const image = context.createImageData(nx, ny);
  const data = image.data;
  const rgb = shades("cyclic");
  const plain = table(look.map || "inferno");
  const pixels = new Uint32Array(data.buffer);
  for (let i = 0, at = 2 * layer * nx * ny; i < nx * ny; i++, at += 2) {
    const re = values[at], im = values[at + 1];
    const modulus = Math.min(1, Math.hypot(re, im) / brightest);
    if (look.part === "amplitude") { pixels[i] = plain[(255 * modulus) | 0]; continue; }
    const hue = 3 * Math.min(255, Math.floor((Math.atan2(im, re) / (2 * Math.PI) + 0.5) * 256));
    const bright = look.part === "phase" ? 1 : 1.12 * modulus;
    data[4 * i] = Math.min(255, rgb[hue] * bright);
    data[4 * i + 1] = Math.min(255, rgb[hue + 1] * bright);
    data[4 * i + 2] = Math.min(255, rgb[hue + 2] * bright);
    data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return RASTER;
}

// Modulus that is drawn brightest: a few hot pixels must not darken the rest.
function brightestOf(frame) {
  if (frame.brightest) return frame.brightest;
  const { head, values } = frame;
  const moduli = [];
  const every = Math.max(1, Math.floor(values.length / 2 / 20000));
  for (let i = 0; i < values.length; i += 2 * every) moduli.push(Math.hypot(values[i], values[i + 1]));
  moduli.sort((a, b) => a - b);
  let most = moduli[Math.max(0, moduli.length - 1 - Math.floor(moduli.length / 1000))];
  if (head.brightest) most = Math.min(most, head.brightest);
  return (frame.brightest = most > 0 ? most : 1);
}

// Room of a picture: where its plot stands on a canvas of a width; heights follow.
function room(head, width, large) {
  const margin = { left: 58, right: head.kind === "image" ? 78 : 14, top: 24, bottom: 42 };
  const across = width - margin.left - margin.right;
  if (head.kind === "curve") return { ...margin, width: across, height: Math.round(Math.min(across * 0.55, large ? 460 : 260)) };
  const [left, right, lower, upper] = head.extent;
  const ratio = Math.abs((upper - lower) / (right - left));
  const natural = (head.units[0] === head.units[1] && ratio > 1 / 7 && ratio < 7) || head.kind === "wave" ? ratio : 0.62;
  const most = large ? Math.max(420, innerHeight - 260) : 400;
  const height = Math.min(across * natural, most);
  const wide = Math.min(across, height / natural);
  return { ...margin, left: margin.left + Math.round((across - wide) / 2), width: Math.round(wide), height: Math.max(40, Math.round(height)) };
}

function prepare(canvas, width, height, ratio) {
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.lineWidth = 1;
  return context;
}

// Frame, ticks and labels around a plot.
function axes(c, r, colours, x, y) {
  c.strokeStyle = colours.soft; c.fillStyle = colours.ink;
  c.strokeRect(r.left - 0.5, r.top - 0.5, r.width + 1, r.height + 1);
  c.textAlign = "center"; c.textBaseline = "top";
  for (const [at, text] of x.ticks.marks) {
    const p = r.left + x.place(at) * r.width;
    if (p < r.left - 1 || p > r.left + r.width + 1) continue;
    c.beginPath(); c.moveTo(p, r.top + r.height + 1); c.lineTo(p, r.top + r.height + 5); c.stroke();
    c.fillText(text, p, r.top + r.height + 7);
  }
  label(c, labelled(x.name, x.ticks.unit), r.left + r.width / 2, r.top + r.height + 24);
  c.textAlign = "right"; c.textBaseline = "middle";
  let widest = 0;
  for (const [at, text] of y.ticks.marks) {
    const p = r.top + (1 - y.place(at)) * r.height;
    if (p < r.top - 1 || p > r.top + r.height + 1) continue;
    c.beginPath(); c.moveTo(r.left - 1, p); c.lineTo(r.left - 5, p); c.stroke();
    c.fillText(text, r.left - 7, p);
    widest = Math.max(widest, c.measureText(text).width);
  }
  c.save();
  c.translate(Math.max(9, r.left - widest - 17), r.top + r.height / 2); c.rotate(-Math.PI / 2);
  label(c, labelled(y.name, y.ticks.unit), 0, 0);
  c.restore();
}

const linearAxis = (name, unit, low, high, count) => ({ name, ticks: linearTicks(Math.min(low, high), Math.max(low, high), count, unit), place: (v) => (v - low) / (high - low) });

// Draws a field; returns the room of its plot and a function from places in it to words.
function drawField(canvas, frame, look, outlines, width, large, ratio) {
  const { head, values } = frame, colours = theme(), r = room(head, width, large);
  const c = prepare(canvas, width, r.top + r.height + r.bottom, ratio);
  const scale = fieldScale(frame, look);
  const raster = paintField(frame, scale, colours);
  c.imageSmoothingEnabled = head.nx > r.width * ratio;
  c.imageSmoothingQuality = "high";
  c.drawImage(raster, r.left, r.top, r.width, r.height);
  const [x0, x1, y0, y1] = head.extent;
  c.save();
  c.beginPath(); c.rect(r.left, r.top, r.width, r.height); c.clip();
  for (const o of outlines) {
    c.beginPath();
    for (let i = 0; i < o.values.length; i += 4) {
      const at = (k) => [r.left + ((o.values[i + k] - x0) / (x1 - x0)) * r.width, r.top + ((y1 - o.values[i + k + 1]) / (y1 - y0)) * r.height];
      c.moveTo(...at(0)); c.lineTo(...at(2));
    }
    // To be seen on dark and on light colours.
    c.strokeStyle = "#fff"; c.lineWidth = 3; c.stroke();
    c.strokeStyle = "#000"; c.lineWidth = 1.2; c.stroke();
  }
  c.restore();
  axes(c, r, colours, linearAxis(head.labels[0], head.units[0], x0, x1, r.width / 75), linearAxis(head.labels[1], head.units[1], y0, y1, r.height / 50));
  colourBar(c, r, scale, head, colours);
  const read = (u, v) => {
    const column = Math.min(head.nx - 1, Math.floor(u * head.nx)), row = Math.min(head.ny - 1, Math.floor(v * head.ny));
    const [x, y] = [x0 + u * (x1 - x0), y1 + v * (y0 - y1)];
    return `${head.labels[0]} = ${value(x, head.units[0])}, ${head.labels[1]} = ${value(y, head.units[1])}: ${head.symbol} = ${value(values[row * head.nx + column], head.unit, 5)}`;
  };
  return { room: r, read, cells: [head.nx, head.ny] };
}

function colourBar(c, r, scale, head, colours) {
  const left = r.left + r.width + 10, wide = 12;
  const rgb = shades(scale.map);
  for (let k = 0; k < r.height; k++) {
    const i = Math.min(255, Math.floor((1 - (k + 0.5) / r.height) * 256));
    c.fillStyle = `rgb(${rgb.subarray(3 * i, 3 * i + 3)})`;
    c.fillRect(left, r.top + k, wide, 1.5);
  }
  c.strokeStyle = colours.soft; c.fillStyle = colours.ink;
  c.strokeRect(left - 0.5, r.top - 0.5, wide + 1, r.height + 1);
  const turn = head.palette === "Cyclic" && scale.high === Math.PI;
  const ticks = turn ? { marks: [[-Math.PI, "\u2212\u03c0"], [-Math.PI / 2, "\u2212\u03c0/2"], [0, "0"], [Math.PI / 2, "\u03c0/2"], [Math.PI, "\u03c0"]], unit: head.unit }
    : scale.log ? { marks: logTicks(scale.low, scale.high, r.height / 30), unit: head.unit } : linearTicks(scale.low, scale.high, r.height / 45, head.unit);
  c.textAlign = "left"; c.textBaseline = "middle";
  for (const [at, text] of ticks.marks) {
    const y = r.top + (1 - scale.place(at)) * r.height;
    c.beginPath(); c.moveTo(left + wide + 1, y); c.lineTo(left + wide + 5, y); c.stroke();
    c.fillText(text, left + wide + 8, y);
  }
  c.textBaseline = "bottom";
  const symbol = scale.absolute ? `|${head.symbol}|` : head.symbol;
  label(c, labelled(symbol, ticks.unit), left + wide + 56, r.top - 9, "right");
}

// Draws the layers of a wave side by side.
function drawWave(canvas, frame, look, width, large, ratio) {
  const { head, values } = frame, colours = theme();
  const across = head.layers === 1 ? 1 : Math.min(Math.ceil(Math.sqrt(head.layers)), 3), down = Math.ceil(head.layers / across), gap = head.layers > 1 ? 20 : 0;
  const whole = room({ ...head, kind: "wave" }, width + 44, large);
  const [x0, x1, y0, y1] = head.extent;
  const ratioOf = Math.abs((y1 - y0) / (x1 - x0));
  const left = 58, free = width - left - 14 - (across - 1) * 8;
  const side = Math.min(free / across, (large ? Math.max(420, innerHeight - 260) : 400) / down / ratioOf);
  const tall = side * ratioOf, begin = left + Math.max(0, (free - side * across) / 2), top = whole.top + (gap ? 2 : 0);
  const c = prepare(canvas, width, top + down * (tall + gap) - gap + whole.bottom, ratio);
  const layer = (l) => ({ left: Math.round(begin + (l % across) * (side + 8)), top: Math.round(top + Math.floor(l / across) * (tall + gap)), width: Math.round(side), height: Math.round(tall) });
  const powers = Array.from({ length: head.layers }, (_, l) => { let sum = 0; for (let i = 2 * l * head.nx * head.ny; i < 2 * (l + 1) * head.nx * head.ny; i++) sum += values[i] ** 2; return sum; });
  const total = powers.reduce((a, b) => a + b, 0) || 1;
  const most = brightestOf(frame);
  for (let l = 0; l < head.layers; l++) {
    const r = layer(l);
    let brightest = most;
    if (head.layers > 1 && !head.brightest) {
      brightest = 0;
      for (let i = 2 * l * head.nx * head.ny; i < 2 * (l + 1) * head.nx * head.ny; i += 2) brightest = Math.max(brightest, Math.hypot(values[i], values[i + 1]));
      brightest ||= 1;
    }
    const raster = paintWave(frame, l, brightest, look);
    c.imageSmoothingEnabled = head.nx > r.width * ratio;
    c.drawImage(raster, r.left, r.top, r.width, r.height);
    c.fillStyle = colours.soft; c.textAlign = "left"; c.textBaseline = "bottom";
    if (head.layers > 1) c.fillText(`mode ${l + 1}: ${(100 * powers[l] / total).toFixed(1)} %`, r.left, r.top - 3);
    if (l === (down - 1) * across) axes(c, r, colours, linearAxis(head.labels[0], head.units[0], x0, x1, r.width / 75), linearAxis(head.labels[1], head.units[1], y0, y1, r.height / 50));
    else { c.strokeStyle = colours.soft; c.strokeRect(r.left - 0.5, r.top - 0.5, r.width + 1, r.height + 1); }
  }
  if (look.part !== "amplitude") wheel(c, layer(across - 1), look.part === "phase");
  const first = layer(0);
  const read = (u, v, l) => {
    const column = Math.min(head.nx - 1, Math.floor(u * head.nx)), row = Math.min(head.ny - 1, Math.floor(v * head.ny));
    const i = 2 * ((l * head.ny + row) * head.nx + column);
    const [re, im] = [values[i], values[i + 1]];
    return `${head.labels[0]} = ${value(x0 + u * (x1 - x0), head.units[0])}, ${head.labels[1]} = ${value(y1 + v * (y0 - y1), head.units[1])}: modulus ${figure(Math.hypot(re, im))}, phase ${figure(Math.atan2(im, re), 3)} rad`;
  };
  return { room: first, read, cells: [head.nx, head.ny], layers: Array.from({ length: head.layers }, (_, l) => layer(l)) };
}

// A small wheel of the phases in the upper right corner.
function wheel(c, r, flat) {
  const radius = 17, x = r.left + r.width - radius - 6, y = r.top + radius + 6;
  for (let k = 0; k < 48; k++) {
    const from = (2 * Math.PI * k) / 48, i = Math.floor((((from + Math.PI) / (2 * Math.PI)) % 1) * 256);
    c.beginPath(); c.moveTo(x, y); c.arc(x, y, radius, -from - 0.14, -from); c.closePath();
    c.fillStyle = `rgb(${shades("cyclic").subarray(3 * i, 3 * i + 3)})`; c.fill();
  }
  if (!flat) {
    const shade = c.createRadialGradient(x, y, 0, x, y, radius);
    shade.addColorStop(0, "#000"); shade.addColorStop(1, "#0000");
    c.beginPath(); c.arc(x, y, radius, 0, 2 * Math.PI); c.fillStyle = shade; c.fill();
  }
  c.beginPath(); c.arc(x, y, radius, 0, 2 * Math.PI); c.strokeStyle = "#fff"; c.stroke();
}

// Draws lines over one abscissa. `curve`: x, lines [{name, values}], labels and units of both, log.
function drawCurve(canvas, curve, width, large, ratio, small) {
  const colours = theme(), head = { kind: "curve" };
  const r = room(head, width, large);
  const legend = curve.lines.length > 1 ? 18 * Math.ceil(curve.lines.length / Math.max(1, Math.floor(r.width / 130))) : 0;
  r.top = 8 + legend;
  if (small) { r.height = Math.round(r.width * 0.5); r.bottom = 40; }
  const c = prepare(canvas, width, r.top + r.height + r.bottom, ratio);
  const usable = (v) => v !== null && v - v === 0 && (!curve.log || v > 0);
  let [x0, x1, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const x of curve.x) if (x - x === 0) { x0 = Math.min(x0, x); x1 = Math.max(x1, x); }
  for (const line of curve.lines) for (const v of line.values) if (usable(v)) { low = Math.min(low, v); high = Math.max(high, v); }
  if (!(x0 < x1)) { x0 = Number.isFinite(x0) ? x0 - 0.5 : 0; x1 = x0 + 1; }
  if (!Number.isFinite(low)) { low = curve.log ? 0.1 : 0; high = 1; }
  const flat = low === high;
  if (curve.log) {
    if (high / low > 1e16) low = high * 1e-16;
    const pad = flat ? 2 : (high / low) ** 0.05; low /= pad; high *= pad;
  } else { const pad = flat ? Math.abs(low) * 0.01 || 1 : 0.06 * (high - low); low -= pad; high += pad; }
  const yPlace = curve.log ? (v) => Math.log(v / low) / Math.log(high / low) : (v) => (v - low) / (high - low);
  let ticks = curve.log ? { marks: logTicks(low, high, r.height / 34), unit: curve.units[1] } : linearTicks(low, high, r.height / 38, curve.units[1]);
  if (!curve.log && ticks.marks.some(([, text]) => text.length > 7)) {
    // Small changes of a large value: the ticks count from its middle.
    const middle = +((low + high) / 2).toPrecision(5), around = linearTicks(low - middle, high - middle, r.height / 38, curve.units[1]);
    ticks = { marks: around.marks.map(([at, text]) => [at + middle, at > 0 ? `+${text}` : text]), unit: around.unit, middle };
  }
  c.strokeStyle = colours.grid;
  for (const [at] of ticks.marks) { const y = Math.round(r.top + (1 - yPlace(at)) * r.height) + 0.5; c.beginPath(); c.moveTo(r.left, y); c.lineTo(r.left + r.width, y); c.stroke(); }
  c.save();
  c.beginPath(); c.rect(r.left, r.top, r.width, r.height); c.clip();
  curve.lines.forEach((line, k) => {
    c.beginPath(); c.strokeStyle = c.fillStyle = colours.lines[k % 8]; c.lineWidth = 1.6; c.lineJoin = "round";
    c.setLineDash(/theory|expected|exact|goal|fit|^exp\(/i.test(line.name) ? [6, 4] : []);
    let down = false, count = 0;
    for (let i = 0; i < curve.x.length; i++) {
      const v = line.values[i];
      if (!usable(v)) { down = false; continue; }
      const x = r.left + ((curve.x[i] - x0) / (x1 - x0)) * r.width, y = r.top + (1 - yPlace(v)) * r.height;
      if (down) c.lineTo(x, y); else c.moveTo(x, y);
      down = true; count += 1;
    }
    c.stroke();
    if (count > 0 && count <= 12) for (let i = 0; i < curve.x.length; i++) if (usable(line.values[i])) { c.beginPath(); c.arc(r.left + ((curve.x[i] - x0) / (x1 - x0)) * r.width, r.top + (1 - yPlace(line.values[i])) * r.height, 2.5, 0, 7); c.fill(); }
  });
  c.restore();
  c.setLineDash([]); c.lineWidth = 1;
  axes(c, r, colours, linearAxis(curve.labels[0], curve.units[0], x0, x1, r.width / 75), { name: curve.labels[1] || "", ticks, place: yPlace });
  if (ticks.middle !== undefined) { c.textAlign = "left"; c.textBaseline = "top"; c.fillStyle = colours.soft; c.fillText(`around ${figure(ticks.middle, 5)}`, r.left + 5, r.top + 4); }
  if (legend) {
    c.textAlign = "left"; c.textBaseline = "middle";
    const columns = Math.max(1, Math.floor(r.width / 130));
    curve.lines.forEach((line, k) => {
      const x = r.left + (k % columns) * 130, y = 9 + 18 * Math.floor(k / columns);
      c.fillStyle = colours.lines[k % 8]; c.fillRect(x, y - 1, 14, 3);
      c.fillStyle = colours.ink; label(c, line.name.length > 17 ? line.name.slice(0, 16) + "\u2026" : line.name, x + 19, y, "left");
    });
  }
  const read = (u) => {
    const x = x0 + u * (x1 - x0);
    let nearest = 0;
    for (let i = 1; i < curve.x.length; i++) if (Math.abs(curve.x[i] - x) < Math.abs(curve.x[nearest] - x)) nearest = i;
    const names = curve.lines.map((line) => `${curve.lines.length > 1 ? line.name : curve.labels[1] || line.name} = ${value(line.values[nearest], curve.units[1], 5)}`);
    return `${curve.labels[0]} = ${value(curve.x[nearest], curve.units[0])}: ${names.join(", ")}`;
  };
  return { room: r, read, cells: [Math.max(2, Math.min(curve.x.length, 200)), 1] };
}
