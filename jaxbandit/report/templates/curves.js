// Regret over rounds: a view for each chosen environment, with one set of policies for all of them.

function startCurves(data) {
  const shown = new Set(data.shown);
  const filters = {}; // swept field of the policies -> the one value that is let through
  const views = [];
  const setting = {x: byId("x-scale"), y: byId("y-scale"), band: byId("band")};
  if (byId("bound")) setting.bound = byId("bound");
  for (const [value, text] of [["band", data.band], ["rare", data.rare], ["none", "none"]]) {
    setting.band.append(new Option(text, value));
  }

  const passes = point => Object.entries(filters).every(
    ([field, value]) => value === "all" || !(field in point.values) || point.values[field] === value);
  const visible = environment => data.policies.map((_, p) => p).filter(
    p => shown.has(p) && passes(data.policies[p]) && data.curves.mean[p][environment]);
  const colour = point => (isDark() ? point.dark : point.light);
  const refresh = () => { chips(); views.forEach(view => view.update()); };

  const chips = () => toggles(byId("policies"), "policy", data.policies, shown, refresh,
    (point, p) => !passes(point) || data.curves.mean[p].every(curve => !curve));

  // The automatic scale is linear if a policy beats every fixed arm, since regret is negative then.
  const isLog = environment => (setting.y.value === "automatic"
    ? !visible(environment).some(p => data.curves.mean[p][environment].some(value => value < -1)) : setting.y.value === "log");

  // A logarithmic axis cannot show values that are not positive.
  const placed = (value, log) => (value === null || (log && value <= 0) ? null : value);

  function traces(environment, log, floor) {
    const rounds = data.rounds, {mean, low, high, rare_low, rare_high} = data.curves;
    const [below, above] = {band: [low, high], rare: [rare_low, rare_high], none: [null, null]}[setting.band.value];
    const bands = [], lines = [];
    for (const p of visible(environment)) {
      const point = data.policies[p], curve = mean[p][environment];
      const from = below?.[p][environment], to = above?.[p][environment];
      if (from && to) {
        const at = rounds.map((_, n) => n).filter(n => from[n] !== null && to[n] !== null && !(log && to[n] <= 0));
        const down = at.map(n => (log ? Math.max(from[n], floor) : from[n]));
        bands.push({
          x: [...at.map(n => rounds[n]), ...at.map(n => rounds[n]).reverse()],
          y: [...at.map(n => (log ? Math.max(to[n], floor) : to[n])), ...down.reverse()],
          type: "scatter", mode: "lines", line: {width: 0}, fill: "toself", fillcolor: colour(point), opacity: 0.18,
          hoverinfo: "skip", showlegend: false,
        });
      }
      const limits = rounds.map((_, n) => (from && to && from[n] !== null ? ` (${number(from[n])} to ${number(to[n])})` : ""));
      lines.push({
        x: rounds, y: curve.map(value => placed(value, log)), name: escaped(point.shown), type: "scatter",
        mode: rounds.length > 1 ? "lines" : "markers", line: {color: colour(point), dash: point.dash, width: 2},
        marker: {color: colour(point)}, showlegend: false, customdata: curve.map((value, n) => number(value) + limits[n]),
        hovertemplate: "%{customdata}",
      });
    }
    return [...bands, ...lines];
  }

  // From the smallest positive mean to the largest limit; a curve that starts next to 0 does not flatten the others.
  function logRange(environment) {
    const means = visible(environment).flatMap(p => data.curves.mean[p][environment]).filter(value => value > 0);
    if (!means.length) return null;
    const top = Math.max(...means);
    const bottom = Math.max(Math.min(...means), top * 1e-5);
    return [Math.log10(bottom) - 0.15, Math.log10(top) + 0.15];
  }

  // A short segment with the slope of the order for the class, at the end of the highest curve; null if it is not wanted.
  function guide(environment, curves) {
    const order = data.bounds[environment];
    if (!order || setting.bound.value === "none" || !curves.length) return null;
    const top = Math.max(...curves.flatMap(trace => trace.y).filter(y => y !== null));
    const end = order.at[order.at.length - 1], last = data.rounds[data.rounds.length - 1];
    if (!(top > 0) || !(end > 0)) return null;
    const y = order.at.map((value, n) => (value === null || data.rounds[n] < last / 8 ? null : 1.2 * top * value / end));
    return [{
      x: data.rounds, y, name: "lower bound, order only", type: "scatter", mode: "lines", showlegend: false,
      line: {color: css("--soft"), dash: "1px,4px", width: 2}, hoverinfo: "skip",
    }];
  }

  function figure(view) {
    const log = isLog(view.environment);
    const range = log ? logRange(view.environment) : null;
    const drawnTraces = traces(view.environment, log, range ? 10 ** (range[0] - 3) : 0);
    const lines = drawnTraces.filter(trace => trace.name !== undefined);
    const hidden = lines.filter(trace => trace.y.some((y, n) => y === null && trace.customdata[n] !== "–")).length;
    const segment = guide(view.environment, lines);
    const order = segment ? `The dotted segment has the slope of the ${data.bounds[view.environment].text}. ` : "";
    view.says.textContent = order && lines.length && !hidden ? order : !lines.length ? "No policy is chosen, or none has been played here."
      : hidden ? `${order}${hidden} of ${lines.length} curves reach 0 or less, which a logarithmic axis cannot show. Choose a linear one.` : "";
    const decades = range ? range[1] - range[0] : 0;
    return {
      data: [...drawnTraces, ...(segment ?? [])],
      layout: {
        hovermode: lines.length > 10 ? "closest" : "x unified",
        xaxis: {title: {text: "round"}, type: setting.x.value, hoverformat: ",d",
          ...(setting.x.value === "log" ? {dtick: 1, exponentformat: "power"} : {rangemode: "tozero", exponentformat: "SI"})},
        yaxis: {title: {text: "mean pseudo-regret"}, type: log ? "log" : "linear", exponentformat: log ? "power" : "SI",
          ...(range ? {range} : {}), ...(decades > 2 ? {dtick: 1} : {})},
      },
    };
  }

  function addView(environment) {
    const element = document.createElement("div");
    element.className = "view";
    element.innerHTML = '<h3></h3><div class="controls"></div><p class="says"></p><div class="plot"></div>';
    const [title, controls, says, plot] = element.children;
    const view = {environment, says, update() {
      title.innerHTML = escaped(data.environments[view.environment].shown).replace(/[\[(,]/g, "$&<wbr>");
      const holder = controls.firstChild;
      pick(holder, "environment", data.environments, view.environment, chosen => { view.environment = chosen; view.update(); });
      show(plot, () => figure(view));
    }};
    controls.append(document.createElement("span"));
    if (views.length) {
      const close = document.createElement("button");
      close.type = "button";
      close.className = "close";
      close.textContent = "×";
      close.setAttribute("aria-label", "hide this environment");
      close.addEventListener("click", () => {
        views.splice(views.indexOf(view), 1);
        forget(plot);
        element.remove();
        byId("add-environment").hidden = false;
      });
      element.append(close);
    }
    views.push(view);
    byId("curves").append(element);
    view.update();
  }

  const fields = [...new Set(data.policies.flatMap(point => Object.keys(point.values)))];
  for (const field of fields) {
    filters[field] = "all";
    const values = sorted(data.policies.map(point => point.values[field]).filter(value => value !== undefined));
    byId("filters").append(choice(field, ["all", ...values], "all", value => { filters[field] = value; refresh(); }));
  }
  Object.values(setting).forEach(select => select.addEventListener("change", refresh));
  byId("all-policies").addEventListener("click", () => { data.policies.forEach((_, p) => shown.add(p)); refresh(); });
  byId("no-policies").addEventListener("click", () => { shown.clear(); refresh(); });
  byId("add-environment").addEventListener("click", () => {
    const taken = new Set(views.map(view => view.environment));
    addView(data.environments.findIndex((_, n) => !taken.has(n)));
    byId("add-environment").hidden = views.length >= data.environments.length;
  });

  chips();
  const names = data.environments.map(environment => environment.name);
  const played = n => data.curves.mean.some(row => row[n]);
  const firsts = names.map((_, n) => n).filter(n => played(n) && names.indexOf(names[n]) === names.slice(0, n).length);
  const first = firsts.length > 1 ? firsts : names.map((_, n) => n).filter(played);
  first.slice(0, 2).forEach(addView);
  byId("add-environment").hidden = views.length >= data.environments.length;
  return refresh;
}
