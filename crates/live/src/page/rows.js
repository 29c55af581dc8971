// Rows of scalars as they come: a small plot a column.
const rows = { columns: [], steps: [], times: [], values: [], charts: [] };

class Chart extends Card {
  constructor(index, name, unit) {
    super(byId("rows"), labelled(name.replace(/_/g, " "), unit));
    [this.index, this.name, this.unit, this.file] = [index, name, unit, name];
    this.log = null;
    this.box.append(element("div", { class: "tools" }, element("label", {}, (this.box_log = element("input", { type: "checkbox", onchange: () => { this.log = this.box_log.checked; this.redraw(); } })), "log")));
  }

  paint(canvas, width, large, ratio) {
    const values = rows.values[this.index] || [];
    if (this.log === null && values.length > 3) {
      // Values that fall or grow by orders of magnitude.
      const { low, high, positive } = extremes(Float64Array.from(values, (v) => (v === null ? NaN : v)));
      this.box_log.checked = low > 0 && high > 300 * positive;
    }
    const timed = rows.times.some((t) => t !== null);
    const last = values.findLast((v) => v !== null);
    this.caption = last === undefined ? "" : `now ${value(last, this.unit, 5)}`;
    const lines = [{ name: this.name, values }, ...theoryOf(this.name)];
    const across = timed ? "time" : state.run.step || "step";
    return drawCurve(canvas, { x: timed ? rows.times : rows.steps, lines, labels: [across, lines.length > 1 ? "" : this.name.replace(/_/g, " ")], units: ["", this.unit], log: this.log ?? this.box_log.checked }, width, large, ratio, !large);
  }
}

// What a column should be: values that the plan knows, and columns `x_theory`, `x_expected` beside `x`.
const THEORY = /_(theory|expected|exact)$/;
const theoryOf = (name) => [
  ...(state.run.expected || []).filter((e) => e.column === name).map((e) => ({ name: `${e.by} ${figure(e.value)}`, values: rows.steps.map(() => e.value) })),
  ...rows.columns.flatMap(([other], k) => (THEORY.test(other) && other.replace(THEORY, "") === name ? [{ name: other, values: rows.values[k] || [] }] : [])),
];

function takeRows(news) {
  if (news.from === 0) rows.steps = [], rows.times = [], rows.values = news.columns.map(() => []);
  rows.columns = news.columns;
  for (const [step, time, values] of news.rows) {
    rows.steps.push(step);
    rows.times.push(time);
    values.forEach((v, k) => (rows.values[k] ||= []).push(v));
  }
  byId("rows-title").hidden = rows.columns.length === 0;
  rows.columns.forEach(([name, unit], k) => {
    const beside = THEORY.test(name) && rows.columns.some(([other]) => other === name.replace(THEORY, ""));
    if (!rows.charts[k] && !beside) rows.charts[k] = new Chart(k, name, unit);
  });
  rows.charts.forEach((chart) => chart?.redraw());
}

// Rows as the server would send them, for a page that is saved.
const allRows = () => ({ from: 0, columns: rows.columns, rows: rows.steps.map((step, i) => [step, rows.times[i], rows.values.map((column) => column[i] ?? null)]) });
