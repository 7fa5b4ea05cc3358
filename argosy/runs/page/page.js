"use strict";
// Draws what the element #data holds: charts of curves, and a timeline. Nothing is fetched.
(() => {
  let errors = 0;
  addEventListener("error", () => { document.body.dataset.errors = ++errors; });
  document.body.dataset.errors = 0;
  const data = JSON.parse(document.getElementById("data").textContent);
  const svgName = "http://www.w3.org/2000/svg";
  const color = (i) => `var(--c${i % 8})`;

  // What a reload must not forget; a page from a file may have no storage.
  const remembered = (() => {
    try { return JSON.parse(sessionStorage.getItem("argosy:" + location.pathname)) || {}; } catch { return {}; }
  })();
  const remember = (key, value) => {
    remembered[key] = value;
    try { sessionStorage.setItem("argosy:" + location.pathname, JSON.stringify(remembered)); } catch { /* none */ }
  };

  const svg = (name, attributes, parent, text) => {
    const node = document.createElementNS(svgName, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  };
  const html = (name, className, parent, text) => {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  };

  // 1234567 → "1.23M", 0.000012 → "1.2e-5"; `step` says how many digits tell neighbours apart.
  const decimals = (step) => {
    for (let digits = 0; digits < 10; ++digits) {
      const shown = step * 10 ** digits;
      if (shown >= 0.999 && Math.abs(shown - Math.round(shown)) < 1e-6 * shown) return digits;
    }
    return 9;
  };
  const number = (value, step) => {
    const size = Math.abs(value);
    if (!isFinite(value)) return String(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e15)) return value.toExponential(step ? 1 : 3).replace("e+", "e").replace(/\.?0+e/, "e");
    const units = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]];
    for (const [limit, unit] of units) {
      if (size >= limit) {
        const base = unit === "k" ? 1e3 : limit;
        return (value / base).toFixed(step ? decimals(step / base) : 2) + unit;
      }
    }
    if (step) return value.toFixed(decimals(step));
    return String(Number(value.toPrecision(5)));
  };
  const exact = (value) => Number.isInteger(value) ? value.toLocaleString("en-US") : String(Number(value.toPrecision(6)));

  const linearTicks = (low, high, count) => {
    const raw = (high - low) / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999) || raw;
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && ticks.length < 50; ++i) ticks.push(i * step);
    return { ticks, step };
  };
  const logTicks = (low, high) => {
    const ticks = [];
    const decades = Math.log10(high / low);
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); ++e) {
      for (const m of decades > 4 ? [1] : decades > 1.5 ? [1, 3] : [1, 2, 3, 5, 7]) {
        const value = m * 10 ** e;
        if (value >= low * 0.999 && value <= high * 1.001) ticks.push(value);
      }
    }
    const every = Math.ceil(ticks.length / 8);
    return ticks.filter((_, i) => i % every === 0);
  };

  const brief = (value) => Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(4)));

  // An exponential mean that starts without bias towards 0; as TensorBoard's.
  const smoothed = (points, weight) => {
    if (!weight) return points;
    let sum = 0, scale = 0;
    return points.map(([x, y]) => {
      sum = sum * weight + y * (1 - weight);
      scale = scale * weight + (1 - weight);
      return [x, sum / scale];
    });
  };

  const tip = html("div", "tip", document.body);
  tip.hidden = true;
  const showTip = (event, title, rows) => {
    tip.replaceChildren();
    html("div", "", tip, title).style.color = "var(--soft)";
    for (const [index, name, value] of rows) {
      const row = html("div", "row", tip);
      html("i", "", row).style.background = color(index);
      html("span", "", row, name);
      html("b", "", row, value);
    }
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const right = event.clientX + 16 + box.width > innerWidth;
    tip.style.left = Math.max(4, right ? event.clientX - 16 - box.width : event.clientX + 16) + "px";
    tip.style.top = Math.max(4, Math.min(innerHeight - box.height - 4, event.clientY + 12)) + "px";
  };
  const hideTip = () => { tip.hidden = true; };

  const view = { smooth: remembered.smooth || 0, log: Boolean(remembered.log) };
  const charts = [];

  const nearest = (points, x) => {
    let low = 0, high = points.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle][0] <= x) low = middle; else high = middle;
    }
    return Math.abs(points[low][0] - x) <= Math.abs(points[high][0] - x) ? points[low] : points[high];
  };

  function makeChart(spec, home) {
    const card = html("section", "card chart", home);
    const top = html("div", "top", card);
    html("span", "title", top, spec.title);
    if (spec.unit) html("span", "unit", top, spec.unit);
    const legend = html("div", "legend", top);
    const hidden = new Set(remembered["hidden:" + spec.title] || []);
    for (const series of spec.series) {
      const button = html("button", "", legend);
      button.type = "button";
      const mark = html("i", series.dashed ? "dashed" : "", button);
      mark.style.borderTopColor = color(series.color);
      button.append(series.name);
      button.title = series.name;
      html("b", "", button, series.last === undefined ? "–" : brief(series.last));
      const pressed = () => button.setAttribute("aria-pressed", String(!hidden.has(series.name)));
      pressed();
      button.addEventListener("click", () => {
        hidden.has(series.name) ? hidden.delete(series.name) : hidden.add(series.name);
        remember("hidden:" + spec.title, [...hidden]);
        pressed();
        chart.draw();
      });
    }
    const plot = svg("svg", { role: "img", "aria-label": spec.title }, card);
    const odd = spec.series.filter((s) => s.odd).map((s) => `${s.name}: ${s.odd.toLocaleString("en-US")} not a number, first at ${spec.x} ${exact(s.first_odd)}`);
    if (odd.length) html("div", "note", card, odd.join("; "));
    const chart = { draw, cross };
    let place = null;

    function draw() {
      const width = Math.max(240, card.clientWidth - 28), height = 218;
      const frame = { left: 52, right: width - 8, top: 10, bottom: height - 34 };
      plot.replaceChildren();
      plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
      const shown = spec.series.filter((s) => !hidden.has(s.name) && s.points.length);
      const lines = shown.map((series) => ({ series, points: smoothed(series.points, view.smooth) }));
      // A point is [x, mean], or [x, mean, lowest, highest] where it stands for several steps.
      const ys = lines.flatMap((l) => view.smooth ? l.points.map((p) => p[1]) : l.points.flatMap((p) => p.slice(1)));
      const xs = shown.flatMap((s) => [s.points[0][0], s.points.at(-1)[0]]);
      if (!ys.length) {
        svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, plot, "nothing to show");
        place = null;
        return;
      }
      const log = view.log && Math.min(...ys) > 0;
      let [low, high] = [Math.min(...ys), Math.max(...ys)];
      let [begin, end] = [Math.min(...xs), Math.max(...xs)];
      if (begin === end) { begin -= 0.5; end += 0.5; }
      if (log) {
        if (low === high) { low /= 2; high *= 2; }
        const pad = (high / low) ** 0.04; low /= pad; high *= pad;
      } else {
        if (low === high) { const pad = Math.abs(low) * 0.1 || 1; low -= pad; high += pad; }
        const pad = (high - low) * 0.06;
        const atZero = low >= 0 && low - pad < 0;
        low = atZero ? Math.min(low, 0) : low - pad; high += pad;
      }
      const toX = (x) => frame.left + (x - begin) / (end - begin) * (frame.right - frame.left);
      const share = (y) => log ? Math.log(y / low) / Math.log(high / low) : (y - low) / (high - low);
      const toY = (y) => frame.bottom - share(y) * (frame.bottom - frame.top);

      const vertical = log ? { ticks: logTicks(low, high), step: 0 } : linearTicks(low, high, 6);
      for (const tick of vertical.ticks) {
        svg("line", { class: "grid", x1: frame.left, x2: frame.right, y1: toY(tick), y2: toY(tick) }, plot);
        svg("text", { x: frame.left - 7, y: toY(tick) + 4, "text-anchor": "end" }, plot, number(tick, vertical.step));
      }
      const across = linearTicks(begin, end, Math.max(3, Math.min(9, width / 62)));
      const step = Math.max(1, across.step);
      for (const tick of across.ticks) {
        if (across.step < 1 && !Number.isInteger(Number(tick.toFixed(6)))) continue;  // no half steps
        svg("line", { class: "axis", x1: toX(tick), x2: toX(tick), y1: frame.bottom, y2: frame.bottom + 4 }, plot);
        svg("text", { x: toX(tick), y: frame.bottom + 16, "text-anchor": "middle" }, plot, number(tick, step));
      }
      svg("line", { class: "axis", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom }, plot);
      svg("text", { x: (frame.left + frame.right) / 2, y: frame.bottom + 31, "text-anchor": "middle" }, plot, spec.x);

      const path = (points) => {
        let text = "", open = false;
        for (const [x, y] of points) {
          if (log && y <= 0) { open = false; continue; }
          text += `${open ? "L" : "M"}${toX(x).toFixed(1)} ${Math.max(-1e5, Math.min(1e5, toY(y))).toFixed(1)}`;
          open = true;
        }
        return text;
      };
      const clip = "clip" + charts.indexOf(chart);
      const hole = svg("clipPath", { id: clip }, plot);
      svg("rect", { x: frame.left, y: frame.top - 4, width: frame.right - frame.left + 4, height: frame.bottom - frame.top + 8 }, hole);
      const inside = svg("g", { "clip-path": `url(#${clip})` }, plot);
      for (const { series } of lines) {
        const wide = series.points.filter((p) => p.length > 2 && !(log && p[2] <= 0));
        if (!wide.length) continue;
        const band = path(wide.map((p) => [p[0], p[3]])) + path(wide.map((p) => [p[0], p[2]]).reverse()).replace("M", "L") + "Z";
        svg("path", { class: "band", d: band, fill: color(series.color) }, inside);
      }
      for (const { series, points } of lines) {
        const look = { stroke: color(series.color) };
        if (view.smooth) svg("path", { ...look, class: "curve raw", d: path(series.points) }, inside);
        svg("path", { ...look, class: "curve" + (series.dashed ? " dashed" : ""), d: path(points), "data-curve": series.name }, inside);
        const dots = points.length <= 30 ? points : points.slice(-1);
        for (const [x, y] of dots) svg("circle", { cx: toX(x), cy: toY(y), r: 2.6, fill: color(series.color) }, inside);
      }
      const marks = svg("g", {}, plot);
      place = { lines, toX, toY, frame, begin, end, width, marks };
    }

    // The same step is marked in every chart.
    function cross(x) {
      if (!place) return;
      place.marks.replaceChildren();
      if (x === null || x < place.begin || x > place.end) return;
      const at = place.toX(x);
      svg("line", { class: "cross", x1: at, x2: at, y1: place.frame.top, y2: place.frame.bottom }, place.marks);
      for (const { series, points } of place.lines) {
        const [px, py] = nearest(points, x);
        svg("circle", { cx: place.toX(px), cy: place.toY(py), r: 3.6, fill: color(series.color), stroke: "var(--card)", "stroke-width": 1.5 }, place.marks);
      }
    }

    plot.addEventListener("pointermove", (event) => {
      if (!place) return;
      const box = plot.getBoundingClientRect();
      const at = (event.clientX - box.left) * place.width / box.width;
      const wanted = place.begin + (at - place.frame.left) / (place.frame.right - place.frame.left) * (place.end - place.begin);
      let x = null;
      for (const { points } of place.lines) {
        const [px] = nearest(points, wanted);
        if (x === null || Math.abs(px - wanted) < Math.abs(x - wanted)) x = px;
      }
      if (x === null) return;
      for (const other of charts) other.cross(x);
      showTip(event, `${spec.x} ${exact(x)}`, place.lines.map(({ series, points }) => {
        const [px, py] = nearest(points, x);
        const name = px === x ? series.name : `${series.name} (${spec.x} ${exact(px)})`;
        const [, , low, high] = nearest(series.points, x);
        const range = low === undefined ? "" : ` (${brief(low)} to ${brief(high)})`;
        return [series.color, name, exact(py) + (spec.short_unit ? " " + spec.short_unit : "") + range];
      }));
    });
    plot.addEventListener("pointerleave", () => { hideTip(); for (const other of charts) other.cross(null); });
    charts.push(chart);
    return chart;
  }

  function makeTimeline(spec, home) {
    const rowHeight = 20, gap = 10, head = 22;
    const lanes = [];
    for (const rank of spec.ranks) rank.lanes.forEach((lane, i) => lanes.push({ rank: rank.rank, lane, first: i === 0 }));
    let tall = head;
    for (const row of lanes) { if (row.first && tall > head) tall += gap; row.top = tall; tall += rowHeight; }
    const plot = svg("svg", { role: "img", "aria-label": "timeline" }, home);
    const legend = html("div", "legend", home);
    legend.style.margin = "8px 0 0";
    spec.names.slice(0, 16).forEach((name, i) => {
      const entry = html("button", "", legend);
      html("i", "", entry).style.borderTopColor = color(i);
      entry.append(name);
    });
    let begin = 0, end = spec.length, width = 0, left = 0;
    const micros = (us) => us >= 1e6 ? `${exact(us / 1e6)} s` : us >= 1e3 ? `${exact(us / 1e3)} ms` : `${exact(us)} µs`;
    const labelWidth = Math.min(190, 14 + 6.6 * Math.max(...lanes.map((l) => `rank ${l.rank} · ${l.lane.name}`.length)));
    const draw = () => {
      width = Math.max(300, home.clientWidth - 28);
      left = labelWidth;
      plot.replaceChildren();
      plot.setAttribute("viewBox", `0 0 ${width} ${tall + 4}`);
      const toX = (us) => left + (us - begin) / (end - begin) * (width - left);
      const unit = end - begin >= 2e6 ? [1e6, "s"] : end - begin >= 2e3 ? [1e3, "ms"] : [1, "µs"];
      const { ticks, step } = linearTicks(begin / unit[0], end / unit[0], width / 130);
      for (const tick of ticks) {
        const x = toX(tick * unit[0]);
        if (x < left) continue;
        svg("line", { class: "grid", x1: x, x2: x, y1: head - 6, y2: tall }, plot);
        svg("text", { x, y: 12, "text-anchor": x > width - 30 ? "end" : "middle" }, plot, `${number(tick, step)} ${unit[1]}`);
      }
      for (const { rank, lane, top } of lanes) {
        svg("text", { x: 0, y: top + 14 }, plot, `rank ${rank} · ${lane.name}`.slice(0, 28));
        for (const [start, length, name] of lane.spans) {
          const from = Math.max(left, toX(start)), to = Math.min(width, toX(start + length));
          if (to < left || from > width) continue;
          const box = svg("rect", { class: "span", x: from.toFixed(2), y: top + 2, width: Math.max(0.6, to - from).toFixed(2), height: rowHeight - 4, rx: 2, fill: color(name) }, plot);
          box.addEventListener("pointermove", (event) => showTip(event, `rank ${rank} · ${lane.name}`, [[name, spec.names[name], micros(length)], [name, "at", micros(start)]]));
          box.addEventListener("pointerleave", hideTip);
        }
      }
    };
    const move = (newBegin, newEnd) => {
      const length = Math.min(spec.length, Math.max(spec.length / 1e5, newEnd - newBegin));
      begin = Math.max(0, Math.min(spec.length - length, newBegin));
      end = begin + length;
      draw();
    };
    plot.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && !event.altKey) return;  // plain scrolling stays the page's
      event.preventDefault();
      const box = plot.getBoundingClientRect();
      const share = Math.max(0, ((event.clientX - box.left) * width / box.width - left) / (width - left));
      const factor = (event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8;
      const at = begin + share * (end - begin);
      move(at - (at - begin) * factor, at + (end - at) * factor);
    }, { passive: false });
    let held = null;
    plot.addEventListener("pointerdown", (event) => { held = { x: event.clientX, begin, end }; });
    addEventListener("pointerup", () => { held = null; });
    plot.addEventListener("pointermove", (event) => {
      if (!held) return;
      const shift = (held.x - event.clientX) / plot.getBoundingClientRect().width * width / (width - left) * (held.end - held.begin);
      move(held.begin + shift, held.end + shift);
    });
    plot.addEventListener("dblclick", () => move(0, spec.length));
    draw();
    return draw;
  }

  const home = document.getElementById("charts");
  for (const spec of data.charts) makeChart(spec, home);
  const serverHome = document.getElementById("server_charts");
  if (serverHome) for (const spec of data.server_charts) makeChart(spec, serverHome);
  const drawAll = () => charts.forEach((chart) => chart.draw());
  drawAll();
  const drawTimeline = data.timeline ? makeTimeline(data.timeline, document.getElementById("timeline")) : () => {};

  const smooth = document.getElementById("smooth"), logBox = document.getElementById("log");
  if (smooth) {
    smooth.value = view.smooth;
    logBox.checked = view.log;
    smooth.addEventListener("input", () => { view.smooth = Number(smooth.value); remember("smooth", view.smooth); drawAll(); });
    logBox.addEventListener("change", () => { view.log = logBox.checked; remember("log", view.log); drawAll(); });
  }
  let timer = 0;
  addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(() => { drawAll(); drawTimeline(); }, 80); });
  addEventListener("beforeprint", () => { drawAll(); drawTimeline(); });

  for (const sheet of document.querySelectorAll("details[data-name]")) {
    const key = "sheet " + sheet.dataset.name;
    if (key in remembered) sheet.open = remembered[key];
    sheet.addEventListener("toggle", () => remember(key, sheet.open));
  }

  // How old the page is; a running one is read again, without moving what one looks at.
  const age = document.getElementById("age");
  const tell = () => {
    const seconds = Math.max(0, Date.now() / 1000 - data.written);
    const words = seconds < 90 ? `${Math.round(seconds)} s ago` : seconds < 5400 ? `${Math.round(seconds / 60)} min ago` : seconds < 172800 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86400)} days ago`;
    age.textContent = `Written ${words}`;
    if (data.running && seconds > 120) {
      age.textContent += ": the run may have died without a word";
      age.className = "note";
    }
  };
  tell();
  setInterval(tell, 5000);
  if (data.running) setInterval(() => { if (!document.hidden && tip.hidden) location.reload(); }, 5000);
  document.body.dataset.curves = document.querySelectorAll("path[data-curve]").length;
  document.body.dataset.spans = document.querySelectorAll("rect.span").length;
})();
