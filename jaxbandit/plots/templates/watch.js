"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const slider = document.getElementById("round"), shown = document.getElementById("at"), button = document.getElementById("play");
const frames = data.rounds, last = frames[frames.length - 1];
const dark = matchMedia("(prefers-color-scheme: dark)");
const number = (value) => (value === null ? "none" : Math.abs(value) >= 1e4 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(2) : Number(value.toPrecision(4)).toLocaleString("en-US", { maximumFractionDigits: 10 }));
const whole = (value) => value.toLocaleString("en-US");
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function ends(lists, log, zero = true) {
  let low = Infinity, high = -Infinity;
  for (const list of lists) for (const value of list) if (value !== null && (!log || value > 0)) { low = Math.min(low, value); high = Math.max(high, value); }
  if (!(low <= high)) return log ? [1, 10] : [0, 1];
  if (log) return [low / 1.5, high * 1.5];
  if (!zero && high > low) return [low - 0.05 * (high - low), high + 0.05 * (high - low)];
  return [Math.min(low, 0), high > Math.min(low, 0) ? high * 1.05 : low + 1];
}

function ticks([low, high], log) {
  if (log) {
    const from = Math.ceil(Math.log10(low)), to = Math.floor(Math.log10(high)), every = Math.max(1, Math.ceil((to - from + 1) / 5));
    const found = [];
    for (let power = from; power <= to; power += every) found.push(10 ** power);
    return found;
  }
  const rough = (high - low) / 4, unit = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map((n) => n * unit).find((n) => n >= rough);
  const found = [];
  for (let n = Math.ceil(low / step); n * step <= high; n += 1) found.push(Number((n * step).toPrecision(12)));
  return found;
}

class Panel {
  constructor(parent, caption, range, log, draw) {
    const figure = document.createElement("figure"), text = document.createElement("figcaption");
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", caption);
    text.textContent = caption;
    figure.append(text, this.canvas);
    parent.append(figure);
    Object.assign(this, { range, log, draw });
  }

  show(frame) {
    const scale = devicePixelRatio || 1, width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    const pen = this.canvas.getContext("2d"), box = { left: 52, right: width - 8, top: 6, bottom: height - 20 };
    pen.scale(scale, scale);
    const level = this.log ? Math.log10 : (value) => value, [low, high] = this.range.map(level);
    this.x = (round) => box.left + ((box.right - box.left) * round) / last;
    this.y = (value) => box.bottom - ((box.bottom - box.top) * (level(value) - low)) / (high - low);
    pen.font = "12px system-ui, sans-serif";
    pen.lineWidth = 1;
    for (const value of ticks(this.range, this.log)) {
      pen.strokeStyle = ink("--grid");
      pen.beginPath(); pen.moveTo(box.left, this.y(value)); pen.lineTo(box.right, this.y(value)); pen.stroke();
      pen.fillStyle = ink("--soft"); pen.textAlign = "right"; pen.textBaseline = "middle";
      pen.fillText(number(value), box.left - 5, this.y(value));
    }
    pen.textAlign = "center"; pen.textBaseline = "top";
    for (const value of ticks([0, last], false)) pen.fillText(number(value), Math.min(this.x(value), box.right - 12), box.bottom + 5);
    pen.strokeStyle = ink("--line");
    pen.strokeRect(box.left, box.top, box.right - box.left, box.bottom - box.top);
    pen.strokeStyle = ink("--soft"); pen.setLineDash([2, 3]);
    pen.beginPath(); pen.moveTo(this.x(frames[frame]), box.top); pen.lineTo(this.x(frames[frame]), box.bottom); pen.stroke();
    pen.setLineDash([]);
    this.draw(this, pen, frame);
  }

  line(pen, values, frame, colour, dash = [], width = 1.6) {
    pen.strokeStyle = colour; pen.lineWidth = width; pen.setLineDash(dash);
    pen.beginPath();
    for (let n = 0; n <= frame; n += 1) if (values[n] !== null) pen.lineTo(this.x(frames[n]), this.y(values[n]));
    pen.stroke();
    pen.setLineDash([]);
  }
}

const DASHES = { "-": [], "--": [7, 4], "-.": [7, 3, 2, 3], ":": [2, 3] };
const colour = (look) => (dark.matches ? look.dark : look.light);

function losses(game) {
  return (panel, pen, frame) => {
    for (const event of game.events) {
      if (event[0] > frames[frame]) break;
      const [round, loss, limit, skipped] = event, x = panel.x(round);
      if (limit !== null) { pen.strokeStyle = ink("--limit"); pen.lineWidth = 1; pen.beginPath(); pen.moveTo(x - 2, panel.y(limit)); pen.lineTo(x + 2, panel.y(limit)); pen.stroke(); }
      const y = panel.y(Math.abs(loss));
      if (loss === 0) continue;
      if (skipped) {
        pen.strokeStyle = ink("--skipped"); pen.lineWidth = 1.6; pen.beginPath();
        pen.moveTo(x - 3, y - 3); pen.lineTo(x + 3, y + 3); pen.moveTo(x - 3, y + 3); pen.lineTo(x + 3, y - 3); pen.stroke();
      } else { pen.fillStyle = ink("--kept"); pen.beginPath(); pen.arc(x, y, 1.8, 0, 7); pen.fill(); }
    }
  };
}

const panels = [], words = [];
const sizes = ends(data.games.flatMap((game) => [game.events.map((event) => Math.abs(event[1])), game.events.map((event) => event[2])]), true);
const regrets = ends(data.games.map((game) => game.regret), false), scales = ends(data.games.map((game) => game.scale), false, false);
for (const game of data.games) {
  const section = document.createElement("section"), title = document.createElement("h2"), said = document.createElement("p");
  title.textContent = game.name;
  said.setAttribute("aria-live", "off");
  section.append(title, said);
  document.getElementById("games").append(section);
  panels.push(new Panel(section, "probability of each arm", [0, 1.02], false, (panel, pen, frame) => {
    for (let arm = game.x.length - 1; arm >= 0; arm -= 1) panel.line(pen, game.x[arm], frame, colour(data.arms[arm]), DASHES[data.arms[arm].line]);
  }));
  panels.push(new Panel(section, "size of the losses and the threshold", sizes, true, losses(game)));
  if (data.has_scale) panels.push(new Panel(section, game.scale.some((value) => value !== null) ? "scale S" : "scale S: this policy has none", scales, false, (panel, pen, frame) => panel.line(pen, game.scale, frame, ink("--ink"))));
  panels.push(new Panel(section, `regret${["", " (the other policy is faint)"][data.games.length - 1] ?? " (the other policies are faint)"}`, regrets, false, (panel, pen, frame) => {
    for (const other of data.games) panel.line(pen, other.regret, frame, other === game ? ink("--ink") : ink("--limit"), other === game ? [] : [3, 3], other === game ? 1.8 : 1);
  }));
  words.push((frame) => {
    const limit = game.threshold[frame], skipped = game.skipped[frame], rest = limit === null ? "" : skipped ? `, skipped (threshold ${number(limit)})` : `, kept (threshold ${number(limit)})`;
    said.textContent = `Round ${whole(frames[frame])}: arm ${game.played[frame]} (probability ${number(game.x[game.played[frame]][frame])}), loss ${number(game.loss[frame])}${rest}. Regret ${number(game.regret[frame])}, ${game.skips[frame]} losses skipped so far.`;
  });
}

function show() {
  const frame = Number(slider.value);
  shown.value = `${whole(frames[frame])} of ${whole(last)}`;
  for (const panel of panels) panel.show(frame);
  for (const say of words) say(frame);
}

let timer = 0;
function stop() { clearInterval(timer); timer = 0; button.textContent = "play"; }
button.addEventListener("click", () => {
  if (timer) { stop(); return; }
  if (Number(slider.value) >= frames.length - 1) slider.value = 0;
  button.textContent = "stop";
  const step = Math.max(1, Math.round(frames.length / 300));
  timer = setInterval(() => {
    slider.value = Number(slider.value) + step;
    show();
    if (Number(slider.value) >= frames.length - 1) stop();
  }, 50);
});
slider.max = frames.length - 1;
slider.value = frames.length - 1;
slider.addEventListener("input", () => { stop(); show(); });
addEventListener("resize", show);
dark.addEventListener("change", show);
show();
