"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const state = { output: data.main, filters: data.filters, chosen: {}, rendered: new Set() };
  const $ = (id) => document.getElementById(id);
  const narrow = () => window.innerWidth < 641;

  // a table of the page as objects, with the labels of the cell that each row is of
  function rows(name, where) {
    const table = data.tables[name];
    if (!table) return [];
    const place = Object.fromEntries(table.columns.map((n, k) => [n, k]));
    const found = [];
    for (const row of table.rows) {
      if ("o" in place && row[place.o] !== state.output) continue;
      const made = {};
      table.columns.forEach((n, k) => { made[n] = row[k]; });
      if ("c" in place) label(made, row[place.c]);
      if (where(made)) found.push(made);
    }
    return found;
  }
  function label(row, cell) {
    const at = data.cells[cell];
    data.axes.forEach((axis, k) => { row[axis.name] = axis.labels[at[k]]; row["@" + k] = at[k]; });
    row.cell = naming(at, []);
  }
  // the labels that differ among the shown cells, in one text
  function naming(at, without) {
    const text = data.axes.map((axis, k) =>
      state.filters[k] < 0 && axis.labels.length > 1 && !without.includes(k)
        ? axis.labels[at[k]] : null).filter((v) => v !== null).join(" · ");
    return text || "this design";
  }
  const inside = (but) => (row) =>
    data.axes.every((_, k) => but.includes(k) || state.filters[k] < 0
      || row["@" + k] === state.filters[k]);
  const unit = (o) => {
    const output = data.outputs[o];
    return output.symbol ? `${output.name} (${output.symbol})` : output.name;
  };
  const colour = () => {
    const open = data.axes.filter((a, k) => state.filters[k] < 0 && a.labels.length > 1);
    return state.chosen.colour && open.some((a) => a.name === state.chosen.colour)
      ? state.chosen.colour : (open[0] || data.axes[0] || { name: "cell" }).name;
  };

  const views = {
    ranges: () => ({ rows: rows("summary", inside([])) }),
    overview: () => ({ rows: rows("summary", inside([])) }),
    density: () => ({ rows: rows("densities", inside([])) }),
    exceedance: () => ({ rows: rows("curves", inside([])).filter((r) => r.value !== null) }),
    parts: () => ({
      value: unit(data.step), rows: rows("parts", (r) => r.of === state.chosen.of && inside([])(r)),
    }),
    differences: () => {
      const axis = Number(state.chosen.axis);
      const kept = rows("differences",
        (r) => r.axis === axis && r.of === state.chosen.level && inside([axis])(r));
      for (const r of kept) {
        r.others = naming(data.cells[r.c], [axis]);
        r.label = `${data.axes[axis].labels[0]} → ${data.axes[axis].labels[r.label]}`;
      }
      return { rows: kept };
    },
    indices: () => {
      const cell = cellOf();
      const kept = rows("indices", (r) => r.c === cell && r.index !== null);
      const size = {};
      for (const r of kept) size[r.draw] = Math.max(size[r.draw] || 0, r.index);
      return { rows: kept.sort((a, b) => size[b.draw] - size[a.draw]) };
    },
    heat: () => {
      const [x, y] = [Number(state.chosen.x), Number(state.chosen.y)];
      const kept = rows("summary", (r) => data.axes.every((_, k) =>
        k === x || k === y || r["@" + k] === Math.max(0, state.filters[k])));
      for (const r of kept) r.shown = r[state.chosen.statistic];
      const known = kept.map((r) => r.shown).filter((v) => v !== null);
      const low = Math.min(...known), high = Math.max(...known);
      for (const r of kept) r.rank = high > low ? (r.shown - low) / (high - low) : 1;
      const held = data.axes.filter((_, k) => k !== x && k !== y)
        .map((a) => `${a.name} ${a.labels[Math.max(0, state.filters[data.axes.indexOf(a)])]}`);
      $("heat-note").textContent = held.length ? `Shown for ${held.join(", ")}.` : "";
      return { rows: kept, x: data.axes[x].name, y: data.axes[y].name,
        value: `${state.chosen.statistic.replace("_", ".")} of ${unit(state.output)}` };
    },
    shares: () => ({
      rows: rows("shares", (r) => r.flag === state.chosen.flag && inside([])(r)),
    }),
  };
  // the one cell that a view of a single cell shows: what is not fixed is at its first label
  function cellOf() {
    const at = state.filters.map((k) => Math.max(0, k));
    const cell = data.cells.findIndex((c) => c.every((v, k) => v === at[k]));
    for (const note of document.querySelectorAll(".one-cell")) {
      note.textContent = data.axes.length
        ? `Shown for ${data.axes.map((a, k) => `${a.name} ${a.labels[at[k]]}`).join(", ")}. `
          + "Choose another design above." : "";
    }
    return cell;
  }

  const lines = (kept) =>
    Math.max(...kept.map((r) => (r.others || (r.draw ? "" : r.cell)).split(" · ").length));

  async function draw(name) {
    const place = $(`chart-${name}`);
    if (!place) return;
    const view = views[name]();
    place.dataset.rows = view.rows.length;
    if (!view.rows.length) {
      place.textContent = data.missing[name] || "The store has nothing to show here.";
      place.dataset.done = "1";
      return;
    }
    let text = JSON.stringify(data.charts[name]);
    const choice = { $VALUE: view.value || unit(state.output), $COLOUR: colour(),
      $X: view.x || "", $Y: view.y || "" };
    for (const [key, value] of Object.entries(choice)) {
      text = text.replaceAll(key, JSON.stringify(value).slice(1, -1));
    }
    const spec = JSON.parse(text);
    spec.datasets = { rows: view.rows };
    if (narrow()) {
      Object.assign(spec.config.axis, { labelLimit: 130, labelFontSize: 10, titleFontSize: 11 });
      Object.assign(spec.config.legend, { columns: 2, labelFontSize: 11 });
      // a label a line: names of designs are longer than a phone is wide
      spec.config.axisY = { labelExpr: "split(datum.label, ' · ')" };
      spec.config.axisY.labelLineHeight = 11;
      if (spec.usermeta && !view.x) spec.usermeta.step += 13 * (lines(view.rows) - 1);
    }
    if (spec.usermeta) {
      const { row, step } = spec.usermeta;
      spec.height = step * new Set(view.rows.map((r) => r[row])).size;
    }
    await vegaEmbed(place, spec, { actions: false, renderer: "svg", ast: true, logLevel: 1 });
    place.dataset.done = "1";
  }

  const shown = (value) => value === null || value === undefined ? "–"
    : typeof value === "number" ? Number(value.toPrecision(5)).toLocaleString("en") : value;
  function fill(table, heads, lines) {
    table.replaceChildren();
    const top = table.createTHead().insertRow();
    for (const [text, kind] of heads) {
      const cell = document.createElement("th");
      cell.textContent = text;
      cell.className = kind;
      top.append(cell);
    }
    const body = table.createTBody();
    for (const line of lines) {
      const row = body.insertRow();
      line.forEach((value, k) => {
        const cell = row.insertCell();
        cell.textContent = shown(value);
        cell.className = heads[k][1];
      });
    }
  }
  function numbers() {
    const kept = rows("summary", inside([]));
    const axes = data.axes.map((a) => a.name);
    const heads = [...axes.map((n) => [n, "text"]), ["mean", ""], ["± 95 %", ""],
      ...data.levels.map((p) => [p.name, ""]), ["not finite", ""]];
    fill($("numbers"), heads, kept.slice(0, 400).map((r) => [...axes.map((n) => r[n]), r.mean,
      r.mean_low === null ? null : Number(((r.mean_high - r.mean_low) / 2).toPrecision(2)),
      ...data.levels.map((p) => r[p.key]), r.nonfinite]));
    $("numbers-note").textContent = `${unit(state.output)}: ${data.outputs[state.output].meaning}.`
      + (kept.length > 400 ? ` The first 400 of ${kept.length} designs.` : "");
  }
  function samples() {
    const table = data.tables.samples;
    if (!table || !$("sample-table")) return;
    const cell = cellOf();
    const names = table.columns.slice(3);
    const heads = [["", "text"], ["sample", ""], ...names.map((n) => [n, ""])];
    fill($("sample-table"), heads, rows("samples", (r) => r.c === cell)
      .map((r) => [r.which, r.sample, ...names.map((n) => r[n])]));
  }

  const panels = {
    answer: ["overview"], distributions: ["ranges", "density", "exceedance"], parts: ["parts"],
    differences: ["differences"], sensitivities: ["indices"], map: ["heat"], flags: ["shares"],
    samples: [], spec: [],
  };
  async function refresh() {
    numbers();
    samples();
    const first = document.querySelector("section.shown").id;
    const order = [first, ...Object.keys(panels).filter((p) => p !== first)];
    for (const panel of order) for (const name of panels[panel]) await draw(name);
    document.body.dataset.ready = String(Number(document.body.dataset.ready || 0) + 1);
  }
  let pending = Promise.resolve();
  const changed = () => { pending = pending.then(refresh, refresh); };

  function show(name) {
    for (const button of document.querySelectorAll("nav button")) {
      button.setAttribute("aria-selected", String(button.dataset.panel === name));
    }
    for (const panel of document.querySelectorAll("section")) {
      const on = panel.id === name;
      panel.classList.toggle("shown", on);
      panel.toggleAttribute("inert", !on);
    }
  }
  for (const button of document.querySelectorAll("nav button")) {
    button.addEventListener("click", () => show(button.dataset.panel));
  }
  for (const select of document.querySelectorAll("select")) {
    const { kind, key } = select.dataset;
    if (kind === "choice") state.chosen[key] = select.value;
    select.addEventListener("change", () => {
      if (kind === "output") state.output = Number(select.value);
      if (kind === "filter") state.filters[Number(key)] = Number(select.value);
      if (kind === "choice") state.chosen[key] = select.value;
      changed();
    });
  }
  window.addEventListener("beforeprint", () => {
    for (const panel of document.querySelectorAll("section")) panel.removeAttribute("inert");
  });
  window.addEventListener("afterprint", () => show(document.querySelector("section.shown").id));
  show("answer");
  changed();
})();
