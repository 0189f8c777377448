// The choice of one of several points: its class, then its swept values.

function choice(name, options, chosen, changed, texts = options) {
  const label = document.createElement("label");
  const select = document.createElement("select");
  select.dataset.name = name;
  options.forEach((option, n) => select.append(new Option(texts[n], n, false, option === chosen)));
  select.addEventListener("change", () => changed(options[Number(select.value)]));
  label.append(`${name} `, select);
  return label;
}

const sorted = values => {
  const all = [...new Set(values)];
  return all.every(value => typeof value === "number") ? all.sort((a, b) => a - b) : all;
};

const ofClass = (points, name) => points.filter(point => point.name === name);

// The point that has the wanted value in `field` and the most others in common with `want`.
function nearest(points, want, field) {
  const alike = point => Object.keys(want.values).filter(key => point.values[key] === want.values[key]).length;
  let best = -1;
  points.forEach((point, n) => {
    if (point.name !== want.name || (field && point.values[field] !== want.values[field])) return;
    if (best < 0 || alike(point) > alike(points[best])) best = n;
  });
  return best;
}

function pick(holder, noun, points, index, changed, hidden = []) {
  const focused = holder.contains(document.activeElement) ? document.activeElement.dataset.name : null;
  holder.replaceChildren();
  const here = points[index];
  const names = [...new Set(points.map(point => point.name))];
  if (names.length > 1) {
    const titles = names.map(name => points.find(point => point.name === name).title);
    holder.append(choice(noun, names, here.name, name => changed(nearest(points, {name, values: here.values})), titles));
  }
  for (const field of Object.keys(here.values)) {
    if (hidden.includes(field)) continue;
    const options = sorted(ofClass(points, here.name).map(point => point.values[field]));
    holder.append(choice(field, options, here.values[field], value =>
      changed(nearest(points, {name: here.name, values: {...here.values, [field]: value}}, field))));
  }
  if (focused) holder.querySelector(`select[data-name="${CSS.escape(focused)}"]`)?.focus();
}

// A button for every point: pressed if it is shown.
function toggles(holder, noun, points, shown, changed, isHidden = () => false) {
  holder.replaceChildren(...points.map((point, n) => {
    const chip = document.createElement("button");
    chip.type = "button";
    chip.className = "chip";
    chip.dataset[noun] = n;
    chip.hidden = isHidden(point, n);
    chip.setAttribute("aria-pressed", shown.has(n));
    const dashes = {solid: "", dash: "7 4", dashdot: "7 3 2 3", dot: "2 3"}[point.dash];
    chip.innerHTML = `<svg width="28" height="8" aria-hidden="true"><line x1="1" y1="4" x2="27" y2="4"
      stroke="${isDark() ? point.dark : point.light}" stroke-width="3" stroke-dasharray="${dashes}"/></svg>${escaped(point.shown)}`;
    chip.addEventListener("click", () => {
      if (!shown.delete(n)) shown.add(n);
      changed();
      holder.children[n].focus();
    });
    return chip;
  }));
}
