// Final regret over any two quantities that vary: policies, environments, swept values of either.

function startHeat(data) {
  const sides = {policy: data.policies, environment: data.environments};
  const base = {policy: 0, environment: 0}; // the points that are fixed for the sides not on an axis
  const axes = Object.entries(sides).flatMap(([side, points]) => [
    ...(points.length > 1 ? [{side, text: side}] : []),
    ...[...new Set(points.flatMap(point => Object.keys(point.values)))].map(field => ({side, field, text: field})),
  ]);
  for (const axis of axes) if (axes.some(other => other !== axis && other.text === axis.text)) axis.text += ` (${axis.side})`;

  const pairs = (a, b) => a !== b && (a.side !== b.side || (a.field && b.field
    && sides[a.side].some(point => a.field in point.values && b.field in point.values)));
  const final = (p, w) => data.curves.mean[p]?.[w]?.at(-1) ?? null;
  const played = (side, n) => (side === "policy" ? data.environments.some((_, w) => final(n, w) !== null)
    : data.policies.some((_, p) => final(p, n) !== null));
  const best = w => Math.min(...data.policies.map((_, p) => final(p, w)).filter(value => value !== null));

  // Policies against environments, but two swept values if all policies are points of their product.
  const fields = axes.filter(axis => axis.side === "policy" && axis.field);
  const product = fields.length === 2 && sides.policy.every(point => fields.every(({field}) => field in point.values));
  let x = product ? fields[0] : axes.find(axis => axis.side === "policy" && axes.some(other => pairs(axis, other))) ?? axes[0];
  let y = product ? fields[1] : axes.findLast(axis => axis.text === "environment" && pairs(x, axis)) ?? axes.find(axis => pairs(x, axis));

  const steps = axis => axis.field
    ? sorted(ofClass(sides[axis.side], sides[axis.side][base[axis.side]].name).map(point => point.values[axis.field]))
    : sides[axis.side].map((_, n) => n).filter(n => played(axis.side, n));
  const name = (axis, step) => (axis.field ? String(step) : sides[axis.side][step].brief ?? sides[axis.side][step].shown);

  // The point of a side in a cell: that of the axis itself, or the base with the axes' values put in; -1 if none.
  function point(side, at) {
    const here = at.filter(([axis]) => axis.side === side);
    const whole = here.find(([axis]) => !axis.field);
    if (whole) return whole[1];
    const want = {...sides[side][base[side]].values, ...Object.fromEntries(here.map(([axis, step]) => [axis.field, step]))};
    return sides[side].findIndex(one => one.name === sides[side][base[side]].name
      && Object.keys(want).every(field => one.values[field] === want[field]));
  }

  function controls() {
    const fill = (id, options, chosen) => byId(id).replaceChildren(
      ...options.map(axis => new Option(axis.text, axes.indexOf(axis), false, axis === chosen)));
    fill("heat-x", axes.filter(axis => axes.some(other => pairs(axis, other))), x);
    fill("heat-y", axes.filter(axis => pairs(x, axis)), y);
    for (const side of Object.keys(sides)) {
      const here = [x, y].filter(axis => axis.side === side);
      const fields = here.map(axis => axis.field).filter(Boolean);
      const lacks = point => fields.some(field => !(field in point.values));
      if (lacks(sides[side][base[side]])) base[side] = sides[side].findIndex(point => !lacks(point));
      const holder = byId(`heat-${side}`);
      if (here.some(axis => !axis.field)) holder.replaceChildren();
      else if (fields.length) {
        const able = sides[side].filter(point => !lacks(point));
        pick(holder, side, able, able.indexOf(sides[side][base[side]]),
          n => { base[side] = sides[side].indexOf(able[n]); update(); }, fields);
      } else pick(holder, side, sides[side], base[side], n => { base[side] = n; update(); });
    }
  }

  function figure() {
    const across = steps(x), down = steps(y), ratio = byId("heat-value").value === "ratio";
    const cells = down.map(b => across.map(a => [point("policy", [[x, a], [y, b]]), point("environment", [[x, a], [y, b]])]));
    const values = cells.map(row => row.map(([p, w]) => {
      const value = p < 0 || w < 0 ? null : final(p, w);
      if (!ratio || value === null) return value;
      return best(w) > 0 ? value / best(w) : null;
    }));
    const all = values.flat().filter(value => value !== null);
    const low = Math.min(...all), high = Math.max(...all);
    const log = low > 0 && high > 10 * low;
    const width = byId("heat").clientWidth, narrow = width < 600;
    const room = (width - (narrow ? 240 : 380)) / across.length;
    const said = values.map(row => row.map(value => (value === null ? "" : number(value))));
    byId("heat-says").textContent = ratio && cells.flat().some(([p, w], n) => final(p, w) !== null && values.flat()[n] === null)
      ? "An environment is blank if the best policy's regret is not positive, since multiples of it have no meaning." : "";
    const chars = Math.max(...said.flat().map(text => text.length));
    const lines = (axis, step, long) => wrapped(name(axis, step), axis.field ? 20 : long);
    const labels = down.map(step => lines(y, step, narrow ? 24 : 40));
    const heading = axis => (axis.field ? `${axis.field} of ${sides[axis.side][base[axis.side]].title}` : "");
    const longest = Math.max(...across.map(step => Math.max(...lines(x, step, 16).split("<br>").map(line => line.length))));
    const flat = 7.5 * longest < room;
    const rows = Math.max(26, 6 + 18 * Math.max(...labels.map(label => label.split("<br>").length)));
    return {
      data: [{
        type: "heatmap", z: values.map(row => row.map(value => (value === null || !log ? value : Math.log10(value)))),
        colorscale: data.heat, xgap: 1, ygap: 1, hoverongaps: false, ...(low === high ? {zmin: low - 1, zmax: high + 1} : {}),
        text: said,
        customdata: cells.map((row, i) => row.map(([p, w], j) => p < 0 || w < 0 ? ""
          : `${escaped(data.policies[p].shown)}<br>${escaped(data.environments[w].shown)}<br>${said[i][j]}${ratio ? " × the best" : ""}`)),
        hovertemplate: "%{customdata}<extra></extra>",
        colorbar: {title: {text: ratio ? "× best" : "regret", side: "right"}, thickness: 14, outlinewidth: 0,
          ...(log ? ticks(low, high) : {separatethousands: true})},
      }, ...(room > 6.5 * chars ? [inCells(said, values, value => (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low)), room > 8 * chars ? 12 : 10)] : [])],
      layout: {
        height: Math.max(260, 150 + rows * down.length),
        xaxis: {title: {text: escaped(heading(x))}, tickvals: across.map((_, n) => n), showgrid: false, zeroline: false,
          ticktext: across.map(step => lines(x, step, flat ? 16 : 40)), tickangle: flat ? 0 : -40},
        yaxis: {title: {text: escaped(heading(y))}, tickvals: down.map((_, n) => n), ticktext: labels, autorange: "reversed",
          ...(narrow ? {tickfont: {size: 10}} : {}),
          showgrid: false, zeroline: false},
      },
    };
  }

  // The numbers in the cells, white on the dark half of the colours and black on the bright one.
  function inCells(said, values, shade, size) {
    const cells = values.flatMap((row, i) => row.map((value, j) => [i, j, value])).filter(([, , value]) => value !== null);
    return {
      type: "scatter", mode: "text", x: cells.map(([, j]) => j), y: cells.map(([i]) => i), text: cells.map(([i, j]) => said[i][j]),
      textfont: {size, color: cells.map(([, , value]) => (shade(value) < 0.5 ? "#ffffff" : "#000000"))}, hoverinfo: "skip", showlegend: false,
      cliponaxis: false,
    };
  }

  // 1, 2 and 5 times powers of ten, or the powers alone where those are many.
  function ticks(low, high) {
    const found = [];
    const factors = high / low > 3000 ? [1] : [1, 2, 5];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      for (const factor of factors) {
        const value = factor * 10 ** power;
        if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
      }
    }
    return {tickvals: found.map(Math.log10), ticktext: found.map(number)};
  }

  function update() {
    controls();
    show(byId("heat"), figure);
  }

  byId("heat-x").addEventListener("change", event => {
    x = axes[Number(event.target.value)];
    if (!pairs(x, y)) y = axes.find(axis => pairs(x, axis));
    update();
  });
  byId("heat-y").addEventListener("change", event => { y = axes[Number(event.target.value)]; update(); });
  byId("heat-value").addEventListener("change", update);
  const comparable = data.policies.length > 1 && data.environments.every((_, w) => !played("environment", w) || best(w) > 0);
  byId("heat-value").value = !x.field && comparable ? "ratio" : "regret";
  update();
}
