"use strict";
// Figures are drawn when they come into view, and again when the page changes its colours.

const root = document.documentElement;
const byId = id => document.getElementById(id);
const css = name => getComputedStyle(root).getPropertyValue(name).trim();
const isDark = () => root.dataset.theme === "dark";

const CONFIG = {
  displaylogo: false,
  responsive: true,
  // The page sends nothing: there is no server, and no button that would need one.
  plotlyServerURL: "",
  modeBarButtonsToRemove: ["sendChartToCloud", "select2d", "lasso2d", "autoScale2d"],
  toImageButtonOptions: {format: "svg"},
};
const makers = new Map(); // element -> function that makes {data, layout}
const drawn = new Set();

const inView = new IntersectionObserver(entries => {
  for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
}, {rootMargin: "200px"});

function show(element, make) {
  makers.set(element, make);
  if (drawn.has(element)) draw(element);
  else inView.observe(element);
}

function forget(element) {
  inView.unobserve(element);
  makers.delete(element);
  if (drawn.delete(element) && window.Plotly) Plotly.purge(element);
}

function draw(element) {
  inView.unobserve(element);
  drawn.add(element);
  if (!window.Plotly) return; // it is drawn once plotly.js is unpacked
  const {data, layout} = makers.get(element)();
  if ("printing" in root.dataset) {
    layout.width = element.clientWidth;
    layout.height ??= element.clientHeight; // not that of the screen, where it may have been drawn before
  }
  Plotly.react(element, data, themed(layout), CONFIG);
}

// plotly.js lies in the page as compressed text. The content policy names the script that it unpacks to, and no other.
async function unpack() {
  const bytes = Uint8Array.from(atob(byId("plotly").textContent), letter => letter.charCodeAt(0));
  const script = document.createElement("script");
  script.textContent = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  document.head.append(script);
  redraw();
}
unpack();

const drawAll = () => [...makers.keys()].forEach(draw);
const redraw = () => [...drawn].forEach(draw);

// The page's colours for paper, text and grid; a figure's own settings take precedence.
function themed(layout) {
  const clear = "rgba(0,0,0,0)";
  const axis = {gridcolor: css("--grid"), linecolor: css("--line"), zerolinecolor: css("--line"), automargin: true, separatethousands: true};
  const out = {
    margin: {l: 10, r: 15, t: 30, b: 10},
    ...layout,
    paper_bgcolor: clear,
    plot_bgcolor: clear,
    font: {size: 13, family: getComputedStyle(document.body).fontFamily, ...layout.font, color: css("--ink")},
    hoverlabel: {bgcolor: css("--paper"), bordercolor: css("--line"), font: {color: css("--ink")}, namelength: -1},
    modebar: {bgcolor: clear, color: css("--soft"), activecolor: css("--ink")},
  };
  if ("printing" in root.dataset) out.font.size = 11;
  const named = Object.keys(layout).filter(key => /^[xy]axis\d*$/.test(key));
  for (const key of new Set(["xaxis", "yaxis", ...named])) {
    out[key] = {...axis, ...layout[key], ...colours(axis)};
    const text = out[key].title?.text;
    if (key.startsWith("y") && text) out[key].title = {...out[key].title, text: folded(text, 24)};
  }
  return out;
}

const colours = axis => ({gridcolor: axis.gridcolor, linecolor: axis.linecolor, zerolinecolor: axis.zerolinecolor});

// A regret as the tables write it.
function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value), sign = value < 0 ? "−" : "";
  if (size >= 1e7) return sign + size.toExponential(2).replace("e+", "e");
  if (size >= 1000) return sign + Math.round(size).toLocaleString("en-US");
  return sign + Number(size.toPrecision(3));
}

// A text on several lines, folded at spaces: the name of an upright axis is longer than the axis of a small figure.
const folded = (text, width) => text.split(" ").reduce((lines, word) => {
  if (lines.length && (lines.at(-1) + word).length < width) lines[lines.length - 1] += ` ${word}`;
  else lines.push(word);
  return lines;
}, []).join("<br>");

const escaped = text => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

// A long label on several lines, cut where its parts end.
function wrapped(label, width) {
  const lines = [""];
  for (const part of String(label).split(/(?<=[\[,( ])/)) {
    if (lines.at(-1) && (lines.at(-1) + part).length > width) lines.push("");
    lines[lines.length - 1] += part;
  }
  return lines.map(escaped).join("<br>");
}
