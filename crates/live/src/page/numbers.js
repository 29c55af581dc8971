// Numbers, units and ticks.
const SUPERS = { "-": "\u207b", 0: "\u2070", 1: "\u00b9", 2: "\u00b2", 3: "\u00b3", 4: "\u2074", 5: "\u2075", 6: "\u2076", 7: "\u2077", 8: "\u2078", 9: "\u2079" };
const power = (n) => [...String(n)].map((c) => SUPERS[c]).join("");
const minus = (text) => text.replace(/^-/, "\u2212");

// A number with so many digits: `1.234`, `1.23·10⁻⁷`.
function figure(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "\u2013";
  if (!Number.isFinite(value)) return value > 0 ? "\u221e" : "\u2212\u221e";
  if (value === 0) return "0";
  let exponent = Math.floor(Math.log10(Math.abs(value)));
  let mantissa = (value / 10 ** exponent).toPrecision(digits);
  if (Math.abs(+mantissa) >= 10) { exponent += 1; mantissa = (value / 10 ** exponent).toPrecision(digits); }
  if (exponent >= -3 && exponent < 6) return minus(String(+value.toPrecision(digits)));
  return `${minus(String(+mantissa))}\u00b710${power(exponent)}`;
}

// A whole number with thin spaces between groups.
const whole = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, "\u2009");

function seconds(s) {
  if (s === null || s === undefined) return "\u2013";
  if (s < 1e-6) return `${(1e9 * s).toFixed(0)} ns`;
  if (s < 1e-3) return `${figure(1e6 * s, 3)} \u00b5s`;
  if (s < 1) return `${figure(1e3 * s, 3)} ms`;
  if (s < 100) return `${s.toFixed(s < 10 ? 2 : 1)} s`;
  if (s < 6000) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  return s < 172800 ? `${(s / 3600).toFixed(1)} h` : `${(s / 86400).toFixed(1)} d`;
}

// Units as they are written: exponents and dots.
const unitText = (unit) => (unit || "").replace(/\^(-?\d+)/g, (_, n) => power(n)).replace(/\*/g, "\u00b7");
const labelled = (name, unit) => (unit ? `${name} [${unitText(unit)}]` : name);
const value = (number, unit, digits = 4) => (unit ? `${figure(number, digits)} ${unitText(unit)}` : figure(number, digits));

const GREEK = Object.fromEntries("alphaα betaβ gammaγ deltaδ epsilonε etaη thetaθ kappaκ lambdaλ muμ nuν xiξ piπ rhoρ sigmaσ tauτ phiφ chiχ psiψ omegaω".split(" ").map((w) => [w.slice(0, -1), w.slice(-1)]));

// A label in parts, Greek letters written as such: texts, and subscripts behind single letters, `u_x`.
function parts(text) {
  const greek = text.replace(/(?<![A-Za-z])[a-z]+(?![a-z])/g, (word) => GREEK[word] || word);
  const found = [];
  let at = 0;
  for (const match of greek.matchAll(/(?<![\p{L}\d_])(\p{L})_([A-Za-z0-9]{1,14})(?![A-Za-z0-9_])/gu)) {
    found.push({ text: greek.slice(at, match.index + match[1].length) }, { text: match[2], below: true });
    at = match.index + match[0].length;
  }
  found.push({ text: greek.slice(at) });
  return found.filter((part) => part.text);
}

const PREFIXES = { "-15": "f", "-12": "p", "-9": "n", "-6": "\u00b5", "-3": "m", 0: "", 3: "k", 6: "M", 9: "G" };

// Ticks of a linear axis between two values, with the factor that they are divided by and the unit that is left.
function linearTicks(low, high, count, unit = "") {
  const most = Math.max(Math.abs(low), Math.abs(high));
  let exponent = most > 0 ? 3 * Math.floor(Math.log10(most) / 3 + 1e-9) : 0;
  if (exponent === -3 && most >= 0.05) exponent = 0;
  if (exponent === 3 && most < 1e4) exponent = 0;
  let left = unit;
  if (exponent !== 0) left = /^(m|s|Hz|J|Pa|V|A|W|eV)$/.test(unit) && PREFIXES[exponent] !== undefined ? PREFIXES[exponent] + unit : `10${power(exponent)}${unit ? " " + unitText(unit) : ""}`;
  const scale = 10 ** exponent;
  const span = (high - low) / scale;
  if (!(span > 0) || !Number.isFinite(span)) return { marks: [[low, figure(low)]], unit };
  const rough = span / Math.max(count, 1);
  const decade = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * decade).find((s) => s >= rough * 0.999);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const marks = [];
  for (let k = Math.ceil(low / scale / step - 1e-6); k * step <= high / scale + 1e-6 * step; k++) {
    const at = k * step;
    marks.push([at * scale, minus((at === 0 ? 0 : at).toFixed(Math.min(digits, 12)))]);
  }
  return { marks, unit: left };
}

function logTicks(low, high, count) {
  const [from, to] = [Math.log10(low), Math.log10(high)];
  if (to - from < 1) {
    const marks = [];
    for (let e = Math.floor(from); e <= to; e++) for (const m of [1, 2, 3, 5, 7]) {
      const at = m * 10 ** e;
      if (at >= low * 0.999 && at <= high * 1.001) marks.push([at, figure(at, 2)]);
    }
    return marks.length ? marks : [[low, figure(low, 3)], [high, figure(high, 3)]];
  }
  const every = Math.max(1, Math.ceil((to - from) / Math.max(count, 1)));
  const marks = [];
  for (let e = Math.ceil(from - 1e-9); e <= to + 1e-9; e += every) marks.push([10 ** e, `10${power(e)}`]);
  return marks;
}
