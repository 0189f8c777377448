// The choice of one of several points: its class, then its swept values.

function choice(name, options, chosen, changed) {
  const label = document.createElement("label");
  const select = document.createElement("select");
  select.dataset.name = name;
  options.forEach((option, n) => select.append(new Option(option, n, false, option === chosen)));
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
    holder.append(choice(noun, names, here.name, name => changed(nearest(points, {name, values: here.values}))));
  }
  for (const field of Object.keys(here.values)) {
    if (hidden.includes(field)) continue;
    const options = sorted(ofClass(points, here.name).map(point => point.values[field]));
    holder.append(choice(field, options, here.values[field], value =>
      changed(nearest(points, {name: here.name, values: {...here.values, [field]: value}}, field))));
  }
  if (focused) holder.querySelector(`select[data-name="${CSS.escape(focused)}"]`)?.focus();
}
