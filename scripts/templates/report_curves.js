/* report_curves.js - the report's training curves. */

/* Okabe and Ito's colours; black stands for the ink of the page. */
const LINES = ["#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "currentColor"];
const curves = runs.flatMap((run) => run.curves.map((c) => ({
  ...c, name: runs.length > 1 ? `${run.name}: ${c.label}` : c.label,
})));
const column = (curve, name) => curve.columns.find((c) => c.name === name)?.values;

/* Round ticks: 1, 2, 5 times powers of ten, or the powers alone. */
function ticks(low, high, log) {
  const out = [];
  if (log) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    const stride = Math.max(1, Math.ceil((last - first + 1) / 6));
    for (let k = first; k <= last; k += stride) out.push(10 ** k);
    if (out.length > 1) return out;
    out.length = 0;
  }
  const rough = (high - low) / 5 || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  for (let x = Math.ceil(low / step) * step; x <= high + 1e-9 * step; x += step)
    out.push(Math.abs(x) < step * 1e-9 ? 0 : x);
  return out;
}

function axis(all, log) {
  const low = Math.min(...all), high = Math.max(...all);
  const f = log ? Math.log : (x) => x;
  const span = f(high) - f(low) || 1;
  return { low, high, of: (x) => (f(x) - f(low)) / span, ticks: ticks(low, high, log) };
}

function drawCurves() {
  const name = find("curve-column").value, logY = find("curve-log").checked;
  const logX = find("curve-log-x").checked, height = 320;
  const width = Math.min(Math.max(find("curve-plot").clientWidth, 300), 768);
  const left = 64, bottom = 36, w = width - left - 24, h = height - bottom - 10;
  const lines = curves.map((c, i) => {
    const x = column(c, "step"), y = column(c, name);
    const points = x && y ? x.map((v, k) => [v, y[k]]).filter(([a, b]) => a !== null && b !== null &&
      (!logX || a > 0) && (!logY || b > 0)) : [];
    return { name: c.name, points, colour: LINES[i % LINES.length],
      dash: i >= LINES.length ? "6 3" : "none" };
  }).filter((l) => l.points.length > 0);
  if (lines.length === 0) {
    find("curve-plot").replaceChildren(make("p", { class: "note" }, "no points to show"));
    return;
  }
  const xs = axis(lines.flatMap((l) => l.points.map((p) => p[0])), logX);
  const ys = axis(lines.flatMap((l) => l.points.map((p) => p[1])), logY);
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `${name} over training steps: ` + lines.map((l) =>
      `${l.name} from ${words(l.points[0][1])} to ${words(l.points.at(-1)[1])}`).join(", ") });
  for (const t of xs.ticks) {
    const x = left + xs.of(t) * w;
    svg.append(make("line", { x1: x, x2: x, y1: 10, y2: 10 + h }),
      make("text", { x, y: height - 18, "text-anchor": "middle" }, words(t)));
  }
  for (const t of ys.ticks) {
    const y = 10 + (1 - ys.of(t)) * h;
    svg.append(make("line", { x1: left, x2: left + w, y1: y, y2: y }),
      make("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, words(t)));
  }
  svg.append(make("text", { x: left + w / 2, y: height - 3, "text-anchor": "middle" }, "step"));
  for (const l of lines)
    svg.append(make("path", { stroke: l.colour, "stroke-dasharray": l.dash,
      d: l.points.map(([x, y], k) => `${k ? "L" : "M"}${(left + xs.of(x) * w).toFixed(1)} ` +
        (10 + (1 - ys.of(y)) * h).toFixed(1)).join("") }));
  find("curve-plot").replaceChildren(svg, make("ul", { class: "legend" }, ...lines.map((l) =>
    make("li", {}, make("svg", { viewBox: "0 0 24 10", "aria-hidden": "true" }, make("path", {
      stroke: l.colour, "stroke-dasharray": l.dash, d: "M0 5L24 5", "stroke-width": 3 })),
      ` ${l.name}: ${words(l.points[0][1])} to ${words(l.points.at(-1)[1])}`))));
  const every = Math.max(...curves.map((c) => c.every));
  find("curve-note").textContent = every > 1
    ? `Of long logs 1 entry in ${every} is drawn; the CSV files have all of them.` : "";
}

function startCurves() {
  const names = [...new Set(curves.flatMap((c) => column(c, "step")
    ? c.columns.map((x) => x.name).filter((n) => n !== "step") : []))];
  if (names.length === 0) return;
  find("curves").hidden = false;
  for (const n of names) find("curve-column").append(make("option", {}, n));
  for (const id of ["curve-column", "curve-log", "curve-log-x"])
    find(id).addEventListener("change", drawCurves);
  addEventListener("resize", drawCurves);
  drawCurves();
}

startCurves();
