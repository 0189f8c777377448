// Puts everything in its place.

const held = id => (byId(id) ? JSON.parse(byId(id).textContent) : null);
const data = held("data"), sensitivity = held("sensitivity-data");
const refreshers = [];
if (data) refreshers.push(startCurves(data));
if (byId("heat")) startHeat(data);
if (sensitivity) refreshers.push(startSensitivity(sensitivity));
for (const source of document.querySelectorAll("script[data-drawing-of]")) {
  const drawing = JSON.parse(source.textContent);
  show(document.querySelector(`[data-drawing="${CSS.escape(source.dataset.drawingOf)}"]`), () => ({data: drawing.data, layout: {...drawing.layout}}));
}

function nameTheme() {
  byId("theme").textContent = isDark() ? "light page" : "dark page";
}

function setTheme(theme) {
  root.dataset.theme = theme;
  nameTheme();
  refreshers.forEach(refresh => refresh());
  redraw();
}

byId("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", event => setTheme(event.matches ? "dark" : "light"));
nameTheme();

// On paper everything is shown, in the light form.
let before = null;
addEventListener("beforeprint", () => {
  before = {theme: root.dataset.theme, closed: [...document.querySelectorAll("details:not([open])")]};
  before.closed.forEach(part => { part.open = true; });
  root.dataset.printing = "";
  setTheme("light");
  drawAll();
});
addEventListener("afterprint", () => {
  before.closed.forEach(part => { part.open = false; });
  delete root.dataset.printing;
  setTheme(before.theme);
});
