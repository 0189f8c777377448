// Bars with intervals and response curves of a sensitivity study: one policy at a time, environments side by side.

function startSensitivity(data) {
  const shown = new Set(data.shown);
  let policy = 0;
  const views = [];
  const colour = point => (isDark() ? point.dark : point.light);
  const hatch = {solid: "", dash: "/", dashdot: "x", dot: "."}; // of bars whose colour is there already
  const visible = () => data.environments.map((_, w) => w).filter(w => shown.has(w));
  const limits = (value, low, high) => (value === null ? "–" : low === null || high === null ? number(value)
    : `${number(value)} (${number(low)} to ${number(high)})`);

  function refresh() {
    toggles(byId("sensitivity-environments"), "environment", data.environments, shown, refresh);
    pick(byId("sensitivity-policy"), "policy", data.policies, policy, n => { policy = n; refresh(); });
    views.forEach(view => view());
  }

  const barFigure = (part, m) => () => {
    const {parameters, measures, value, low, high} = part;
    const traces = visible().map(w => {
      const [at, from, to] = [value, low, high].map(values => values[policy][w][m] ?? parameters.map(() => null));
      return {
        type: "bar", name: escaped(data.environments[w].shown), showlegend: false, x: parameters.map(escaped), y: at,
        marker: {color: colour(data.environments[w]), pattern: {shape: hatch[data.environments[w].dash], fgcolor: css("--paper")}},
        error_y: {type: "data", symmetric: false, color: css("--ink"), thickness: 1.3, width: 4,
          array: at.map((y, n) => (to[n] === null ? 0 : Math.max(to[n] - y, 0))),
          arrayminus: at.map((y, n) => (from[n] === null ? 0 : Math.max(y - from[n], 0)))},
        customdata: at.map((y, n) => limits(y, from[n], to[n])), hovertemplate: "%{customdata}",
      };
    });
    return {data: traces, layout: {
      barmode: "group", bargap: parameters.length < 3 ? 0.6 : 0.25, hovermode: visible().length > 10 ? "closest" : "x unified",
      xaxis: {type: "category"}, yaxis: {title: {text: measures[m].axis}, zeroline: true, zerolinewidth: 1.5},
    }};
  };

  const curveFigure = n => () => {
    const {parameters, scales, at, mean, low, high} = data.curves;
    const bands = [], lines = [], means = [];
    for (const w of visible()) {
      const [x, y, from, to] = [at, mean, low, high].map(values => values[policy][w][n]);
      if (!y) continue;
      means.push(...y.filter(value => value !== null));
      const inside = y.map((_, k) => k).filter(k => y[k] !== null && from?.[k] != null && to?.[k] != null);
      bands.push({
        x: [...inside.map(k => x[k]), ...inside.map(k => x[k]).reverse()],
        y: [...inside.map(k => to[k]), ...inside.map(k => from[k]).reverse()],
        type: "scatter", mode: "lines", line: {width: 0}, fill: "toself", fillcolor: colour(data.environments[w]), opacity: 0.18,
        hoverinfo: "skip", showlegend: false,
      });
      lines.push({
        x, y, type: "scatter", mode: "lines+markers", name: escaped(data.environments[w].shown), showlegend: false,
        line: {color: colour(data.environments[w]), dash: data.environments[w].dash, width: 2}, marker: {size: 5},
        customdata: y.map((value, k) => limits(value, from?.[k] ?? null, to?.[k] ?? null)), hovertemplate: "%{customdata}",
      });
    }
    // Environments that lie far apart would flatten each other.
    const log = Math.min(...means) > 0 && Math.max(...means) > 10 * Math.min(...means);
    const above = value => (log ? Math.max(value, Math.min(...means) / 10) : value);
    for (const band of bands) band.y = band.y.map(above);
    return {data: [...bands, ...lines], layout: {
      hovermode: visible().length > 10 ? "closest" : "x unified",
      xaxis: {title: {text: escaped(parameters[n])}, type: scales[n], hoverformat: ".3~g", tickformat: "~g", ...(scales[n] === "log" ? {dtick: "D2"} : {})},
      yaxis: {title: {text: "mean pseudo-regret"}, type: log ? "log" : "linear", exponentformat: log ? "power" : "SI"},
    }};
  };

  function addView(holder, title, make) {
    const element = document.createElement("div");
    element.className = "view";
    element.innerHTML = '<h4></h4><p class="says"></p><div class="plot"></div>';
    const [heading, says, plot] = element.children;
    heading.textContent = title;
    byId(holder).append(element);
    views.push(() => {
      show(plot, make);
      const {data: traces} = make();
      const any = traces.some(trace => trace.name !== undefined && trace.y.some(y => y !== null));
      says.textContent = any ? "" : !shown.size ? "No environment is chosen." : "There are no numbers: none is above the noise, or the policy has no such parameter.";
    });
  }

  for (const [kind, part] of Object.entries(data.bars)) {
    part.measures.forEach((measure, m) => addView(`sensitivity-${kind}`, measure.title, barFigure(part, m)));
  }
  data.curves?.parameters.forEach((name, n) => addView("sensitivity-curves", `Regret over ${name}`, curveFigure(n)));
  refresh();
  return refresh;
}
