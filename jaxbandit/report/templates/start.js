// Puts everything in its place.

const data = JSON.parse(byId("data").textContent);
const refreshCurves = startCurves(data);
if (byId("heat")) startHeat(data);
for (const source of document.querySelectorAll("script[data-drawing-of]")) {
  const drawing = JSON.parse(source.textContent);
  show(document.querySelector(`[data-drawing="${CSS.escape(source.dataset.drawingOf)}"]`), () => drawing);
}

function setTheme(theme) {
  root.dataset.theme = theme;
  byId("theme").textContent = theme === "dark" ? "light" : "dark";
  refreshCurves();
  redraw();
}

byId("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", event => setTheme(event.matches ? "dark" : "light"));
byId("theme").textContent = isDark() ? "light" : "dark";

// On paper everything is shown, in the light form.
let before = null;
addEventListener("beforeprint", () => {
  before = {theme: root.dataset.theme, closed: [...document.querySelectorAll("details:not([open])")]};
  before.closed.forEach(part => { part.open = true; });
  setTheme("light");
  drawAll();
});
addEventListener("afterprint", () => {
  before.closed.forEach(part => { part.open = false; });
  setTheme(before.theme);
});
