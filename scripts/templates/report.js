/* report.js - the report's heads, and functions for report_curves.js, which follows it in
** the page. Data come from the element #data, and reach the page as text and numbers only,
** never as markup. */
"use strict";

const runs = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);

/* A new element: attributes, then children (strings become text). */
function make(name, attributes = {}, ...children) {
  const svg = ["svg", "rect", "line", "text", "path"].includes(name);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

function floats(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

/* Four significant digits, powers of ten where they are shorter. */
function words(x) {
  if (Number.isNaN(x)) return "no value";
  const short = Number(x.toPrecision(4));
  return short !== 0 && Math.abs(short) < 1e-3 ? short.toExponential() : String(short);
}

/* ---- colours ---- */

const hex = (list) => list.split(" ").map((c) => [0, 2, 4].map((i) => parseInt(c.substr(i, 2), 16)));
const palettes = {
  light: hex("f7fbff deebf7 c6dbef 9ecae1 6baed6 4292c6 2171b5 08519c 08306b"),
  dark: hex("101820 0c2742 08306b 08519c 2171b5 4292c6 6baed6 9ecae1 deebf7"),
  signed: hex("67001f b2182b d6604d f4a582 fddbc7 f7f7f7 d1e5f0 92c5de 4393c3 2166ac 053061"),
};
const darkMode = matchMedia("(prefers-color-scheme: dark)");
let printing = false;

function colour(t, signed) {
  if (Number.isNaN(t)) return [166, 166, 166];
  const list = signed ? palettes.signed : darkMode.matches && !printing ? palettes.dark : palettes.light;
  const at = Math.min(Math.max(t, 0), 1) * (list.length - 1);
  const i = Math.min(Math.floor(at), list.length - 2);
  return list[i].map((c, k) => Math.round(c + (at - i) * (list[i + 1][k] - c)));
}
const css = (rgb) => `rgb(${rgb.join(",")})`;

/* ---- heads ---- */

const KINDS = {
  mean: "weights", contribution: "contribution", std: "standard deviation",
};
const QUANTITY = {
  mean: "attention weight", std: "standard deviation of the weight over samples",
  contribution: "contribution: mean weight times mean norm of the value after the output map",
};
const models = runs.flatMap((run) => run.heads.map((m) => ({
  ...m, name: runs.length > 1 ? `${run.name}: ${m.label}` : m.label,
  rows: m.maps.mean.shape[2], columns: m.maps.mean.shape[3],
})));
const state = { a: 0, b: -1, kind: "mean", log: false, withoutFirst: false,
  layer: 0, head: 0, row: 0, column: 0 };

function values(model, name) {
  const map = model.maps[name];
  if (!map) return null;
  if (!map.floats) map.floats = floats(map.values);
  return map.floats;
}

/* The chosen map of one head as { rows, columns, at (row, column) }; null if it was not
** measured. A contribution is weight times norm. */
function headMap(model, layer, head, kind) {
  if (layer >= model.layers || head >= model.heads) return null;
  const { rows, columns } = model, index = layer * model.heads + head;
  const from = values(model, kind === "contribution" ? "mean" : kind);
  const norms = kind === "contribution" ? values(model, "output_norms") : null;
  if (!from || (kind === "contribution" && !norms)) return null;
  const start = index * rows * columns;
  return { rows, columns,
    at: (r, c) => from[start + r * columns + c] * (norms ? norms[index * columns + c] : 1) };
}

const hasKind = (kind) => models.some((m) => headMap(m, 0, 0, kind));

/* What positions row or column i stands for: the first is by itself, then come blocks. */
function positions(model, i, most) {
  if (i === 0) return "1";
  const first = (i - 1) * model.block + 2, last = Math.min(i * model.block + 1, most);
  return first === last ? String(first) : `${first} to ${last}`;
}

function extent(maps) {
  let low = Infinity, high = -Infinity, least = Infinity;
  for (const m of maps)
    for (let r = 0; r < m.rows; r++)
      for (let c = state.withoutFirst ? 1 : 0; c < m.columns; c++) {
        const v = m.at(r, c);
        if (v < low) low = v;
        if (v > high) high = v;
        if (v > 0 && v < least) least = v;
      }
  return { low, high, least };
}

/* How values become 0..1, the same for both panes. */
function makeScale(maps) {
  const { low, high, least } = extent(maps);
  if (state.log && high > 0) {
    const from = Math.max(least, high * 1e-6), span = Math.log(high / from) || 1;
    return { min: from, max: high, signed: false, log: true,
      of: (v) => Number.isNaN(v) ? NaN : v <= from ? 0 : Math.log(v / from) / span };
  }
  const signed = low < 0;
  let max = Math.max(high, -low, 0) || 1;
  if (!state.withoutFirst && state.kind === "mean" && max <= 1) max = 1;
  const min = signed ? -max : 0;
  return { min, max, signed, log: false, of: (v) => (v - min) / (max - min) };
}

function paint(canvas, width, height, at) {
  canvas.width = width, canvas.height = height;
  const context = canvas.getContext("2d"), image = context.createImageData(width, height);
  for (let i = 0; i < width * height; i++)
    image.data.set([...at(i % width, Math.floor(i / width)), 255], 4 * i);
  context.putImageData(image, 0, 0);
}

function scaleBar(scale) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  paint(canvas, 64, 1, (x) => colour(x / 63, scale.signed));
  return make("div", { class: "scale" }, words(scale.min), canvas, words(scale.max),
    scale.log ? " (logarithmic)" : "");
}

/* The largest of the chosen row in any pane: the bars of all are as high for it. */
function rowMax(maps) {
  let max = 0;
  for (const m of maps)
    for (let c = state.withoutFirst ? 1 : 0; c < m.columns && state.row < m.rows; c++)
      max = Math.max(max, Math.abs(m.at(state.row, c)) || 0);
  return max || 1;
}

/* Weights of the chosen query over its keys: bars up to max, and the same as a table. */
function rowBars(model, map, scale, max) {
  const skip = state.withoutFirst ? 1 : 0, n = map.columns - skip;
  const svg = make("svg", { viewBox: `0 0 ${n * 10} 100`, preserveAspectRatio: "none",
    "aria-hidden": "true" });
  const rows = [], base = scale.signed ? 50 : 100, full = scale.signed ? 50 : 100;
  for (let c = skip; c < map.columns; c++) {
    const v = map.at(state.row, c);
    const t = scale.log ? scale.of(v) : v / max;
    const high = Number.isNaN(t) ? 0 : Math.min(Math.abs(t), 1) * full;
    svg.append(make("rect", { x: (c - skip) * 10 + 1, width: 8, height: high,
      y: t < 0 ? base : base - high, class: c === state.column ? "here" : "" }));
    rows.push(make("tr", {}, make("th", { scope: "row" }, positions(model, c, model.keys)),
      make("td", { class: "n" }, words(v))));
  }
  svg.append(make("line", { x1: 0, x2: n * 10, y1: base, y2: base }));
  return make("div", { class: "bars" },
    make("p", { class: "axis" }, `query ${positions(model, state.row, model.queries)} over ` +
      `keys; the highest bar is ${scale.log ? `${words(scale.max)} (logarithmic)` : words(max)}`),
    svg,
    make("details", {}, make("summary", {}, "the row as a table"),
      make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "the row as a table" },
        make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "key"),
          make("th", { scope: "col" }, KINDS[state.kind]))), make("tbody", {}, ...rows)))));
}

/* "query 9, key 1: 0.998": the text of screen readers and of the pointer. */
function say(model, map, row, column) {
  return `${model.name}: query ${positions(model, row, model.queries)}, key ` +
    `${positions(model, column, model.keys)}: ${words(map.at(row, column))}`;
}

function place(box, map, row, column) {
  const skip = state.withoutFirst ? 1 : 0, n = map.columns - skip;
  const [rowBox, cellBox] = box.querySelectorAll("div");
  Object.assign(rowBox.style, { top: `${row / map.rows * 100}%`, height: `${100 / map.rows}%` });
  Object.assign(cellBox.style, { top: rowBox.style.top, height: rowBox.style.height,
    left: `${(column - skip) / n * 100}%`, width: `${100 / n}%` });
}

function heatMap(model, map, scale) {
  const skip = state.withoutFirst ? 1 : 0, n = map.columns - skip;
  const canvas = make("canvas", { "aria-hidden": "true" });
  paint(canvas, n, map.rows, (x, y) => colour(scale.of(map.at(y, x + skip)), scale.signed));
  canvas.style.aspectRatio = `${n} / ${map.rows}`;
  const box = make("div", { class: "map", tabindex: "0", role: "application",
    "aria-roledescription": "heat map", "aria-label": `${model.name}, layer ${state.layer + 1} ` +
    `head ${state.head + 1}, ${map.rows} queries, ${n} keys; arrow keys move` },
    canvas, make("div", { class: "row" }), make("div", { class: "cell" }));
  const cellAt = (event) => {
    const r = canvas.getBoundingClientRect();
    const part = (v, from, size, count) =>
      Math.min(count - 1, Math.max(0, Math.floor((v - from) / size * count)));
    return [part(event.clientY, r.top, r.height, map.rows),
      part(event.clientX, r.left, r.width, n) + skip];
  };
  box.addEventListener("pointermove", (event) => {
    find("readout").textContent = say(model, map, ...cellAt(event));
  });
  box.addEventListener("click", (event) => {
    [state.row, state.column] = cellAt(event);
    box.focus({ preventScroll: true });
    drawHeads();
  });
  box.addEventListener("keydown", (event) => {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      PageUp: [-8, 0], PageDown: [8, 0], Home: [0, -map.columns], End: [0, map.columns] };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    state.row = Math.min(map.rows - 1, Math.max(0, state.row + step[0]));
    state.column = Math.min(map.columns - 1, Math.max(skip, state.column + step[1]));
    drawHeads();
  });
  place(box, map, state.row, state.column);
  return box;
}

function pane(model, map, scale, max, index) {
  const over = model.samples ? `, mean of ${model.samples} sample${model.samples === 1 ? "" : "s"}` : "";
  const e = make("div", { class: "pane", "data-pane": index },
    make("h3", {}, `${model.name}, layer ${state.layer + 1} head ${state.head + 1}`),
    make("p", { class: "note" }, QUANTITY[state.kind] + (state.kind === "std" && model.samples
      ? ` (${model.samples} samples)` : over)));
  if (!map) {
    e.append(make("p", { class: "note" }, headMap(model, state.layer, state.head, "mean")
      ? "This was not measured for this model." : "This model has no such head."));
    return e;
  }
  e.append(make("div", { class: "axis" }, make("span", {}, "queries down, keys across"),
    make("span", {}, `keys ${state.withoutFirst ? 2 : 1} to ${model.keys}`)),
    heatMap(model, map, scale), scaleBar(scale), rowBars(model, map, scale, max));
  return e;
}

const shownModels = () => [state.a, state.b].filter((i) => i >= 0).map((i) => models[i]);

function drawHeads() {
  const focused = document.activeElement?.closest(".pane")?.dataset.pane;
  const inMap = document.activeElement?.classList.contains("map");
  const open = [...document.querySelectorAll(".pane details")].map((d) => d.open);
  const shown = shownModels();
  const maps = shown.map((m) => headMap(m, state.layer, state.head, state.kind));
  const there = maps.filter(Boolean), first = there[0];
  if (first) {
    state.row = Math.min(state.row, first.rows - 1);
    state.column = Math.min(Math.max(state.column, state.withoutFirst ? 1 : 0), first.columns - 1);
  }
  const scale = makeScale(there), max = rowMax(there);
  find("panes").replaceChildren(...shown.map((m, i) => pane(m, maps[i], scale, max, i)));
  document.querySelectorAll(".pane details").forEach((d, i) => { d.open = open[i] ?? false; });
  if (inMap) document.querySelector(`.pane[data-pane="${focused}"] .map`)?.focus({ preventScroll: true });
  find("readout").textContent = shown.map((m, i) => maps[i] && state.row < maps[i].rows &&
    state.column < maps[i].columns ? say(m, maps[i], state.row, state.column) : "").filter(Boolean).join("; ");
  for (const b of find("overview").querySelectorAll("button"))
    b.setAttribute("aria-pressed", String(b.dataset.layer == state.layer && b.dataset.head == state.head));
}

/* One button a head of the first model: its colour is the mean weight on position 1 over
** the queries after the first. */
function drawOverview() {
  const model = models[state.a], grid = find("overview");
  grid.style.gridTemplateColumns = `auto repeat(${model.heads}, minmax(2.4rem, auto))`;
  grid.replaceChildren();
  for (let l = 0; l < model.layers; l++) {
    grid.append(make("span", {}, `layer ${l + 1}`));
    for (let h = 0; h < model.heads; h++) {
      const share = model.first[l * model.heads + h] ?? NaN;
      const button = make("button", { type: "button", "data-layer": l, "data-head": h,
        "aria-label": `layer ${l + 1} head ${h + 1}, weight on position 1: ${words(share)}`,
        title: `layer ${l + 1} head ${h + 1}: ${words(share)} on position 1` }, String(h + 1));
      const rgb = colour(share, share < 0);
      button.style.background = css(rgb);
      button.style.color = rgb[0] * 0.3 + rgb[1] * 0.59 + rgb[2] * 0.11 > 140 ? "#000" : "#fff";
      button.addEventListener("click", () => {
        [state.layer, state.head] = [l, h];
        drawHeads();
      });
      grid.append(button);
    }
  }
  find("heads-note").textContent = "Layers down, heads across; darker means more weight on position 1" +
    (darkMode.matches && !printing ? " (brighter, on this dark page)." : ".") + (model.block > 1
    ? ` From position 2 on, each cell is the largest of ${model.block} x ${model.block} weights.` : "");
}

function startHeads() {
  if (models.length === 0) return;
  find("heads").hidden = false;
  const a = find("source-a"), b = find("source-b");
  b.append(make("option", { value: -1 }, "nothing"));
  models.forEach((m, i) => {
    a.append(make("option", { value: i }, m.name));
    b.append(make("option", { value: i }, m.name));
  });
  find("beside-label").hidden = models.length < 2;
  if (models.length > 1) state.b = 1, b.value = 1;
  state.row = Math.floor(models[0].rows / 2);
  a.addEventListener("change", () => {
    state.a = Number(a.value);
    state.layer = Math.min(state.layer, models[state.a].layers - 1);
    state.head = Math.min(state.head, models[state.a].heads - 1);
    drawOverview();
    drawHeads();
  });
  b.addEventListener("change", () => { state.b = Number(b.value); drawHeads(); });
  for (const [kind, name] of Object.entries(KINDS)) {
    const input = make("input", { type: "radio", name: "kind", value: kind, id: `kind-${kind}` });
    input.checked = kind === state.kind;
    input.disabled = !hasKind(kind);
    input.addEventListener("change", () => { state.kind = kind; drawHeads(); });
    find("kinds").append(make("label", input.disabled
      ? { title: "not measured in this run" } : {}, input, name), " ");
  }
  for (const [id, key] of [["log", "log"], ["without-first", "withoutFirst"]])
    find(id).addEventListener("change", () => { state[key] = find(id).checked; drawHeads(); });
  drawOverview();
  drawHeads();
}

function redraw() {
  if (models.length === 0) return;
  drawOverview();
  drawHeads();
}

startHeads();
darkMode.addEventListener("change", redraw);
addEventListener("beforeprint", () => { printing = true; redraw(); });
addEventListener("afterprint", () => { printing = false; redraw(); });
