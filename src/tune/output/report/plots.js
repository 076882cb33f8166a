// One generator per plot, for over() and inSlices() of pen.js: it yields after each mark. All are drawn again when another metric
// is chosen.
function* drawHistory(div) {
  const points = S.trials.filter((t) => val(t) !== null);
  if (!points.length) return empty(div, 'No trial has a value yet.');
  const w = widthOf(div, 640), s = svg(div, w, 280);
  const [X, Y, marks] = axes(s, { w }, linear('trial', [0, Math.max(1, S.trials[S.trials.length - 1].n)], w / 80, true), linear(metric, clipped(points.map(val)), 7));
  let best = null, d = '';
  for (const t of points) {
    if (best !== null && !better(val(t), best)) continue;
    best = val(t);
    d += d ? `H${X(t.n)}V${Y(best)}` : `M${X(t.n)} ${Y(best)}`;
  }
  el('path', { d: d + `H${w - 14}`, fill: 'none', stroke: 'var(--ink)', 'stroke-width': 1.5 }, marks);
  keepMarks(marks, S.trials);
  for (const t of points) {
    mark('circle', { cx: X(t.n), cy: Y(val(t)), r: points.length > 400 ? 1.8 : 3.2, fill: color(t), 'fill-opacity': 0.8 }, marks, t);
    yield;
  }
  for (const t of S.trials.filter((u) => u.status === 'ERROR' && val(u) === null)) {
    mark('path', { d: `M${tidy(X(t.n) - 3)} 249l6 -6m0 6l-6 -6`, stroke: 'var(--red)', 'stroke-width': 1.6 }, marks, t);
    yield;
  }
  legend(div, [['var(--ink)', 'best so far'], ...seen()]);
}

/// A trial of a population that copied another goes back in its iterations: a new piece begins.
function pieces(points) {
  const out = [];
  for (const p of points) {
    const last = out[out.length - 1];
    if (!last || p[0] <= last[last.length - 1][0]) out.push([p]); else last.push(p);
  }
  return out;
}
function* drawCurves(div, best) {
  const trials = S.trials.filter((t) => curve(t).length);
  if (!trials.length) return empty(div, 'No reports yet.');
  const shown = trials.length > 300 ? trials.filter((t) => t === best || isOneOf(t, trials.length / 300)) : trials;
  const all = shown.flatMap(curve);
  const w = widthOf(div, 640), s = svg(div, w, 280);
  const [X, Y, marks] = axes(s, { w }, linear('iteration', [1, Math.max(2, range(all.map((p) => p[0]))[1])], w / 80, true), linear(metric, clipped(all.map((p) => p[1])), 7));
  keepMarks(marks, shown);
  let copies = false;
  for (const t of [...shown.filter((u) => u !== best), ...(best && curve(best).length ? [best] : [])]) {
    const strong = t === best, stroke = strong ? 'var(--ink)' : color(t);
    const parts = pieces(curve(t));
    parts.forEach((part, i) => {
      mark('polyline', { points: part.map(([x, v]) => X(x) + ',' + Y(v)).join(' '), fill: 'none', stroke, 'stroke-width': strong ? 2.2 : 1.2, 'stroke-opacity': strong ? 1 : 0.6 }, marks, t);
      const [x, v] = part[0];
      if (i > 0 || part.length === 1) el('circle', { cx: X(x), cy: Y(v), r: i > 0 ? 3 : 2.2, fill: i > 0 ? 'var(--paper)' : stroke, stroke }, marks);
      copies = copies || i > 0;
    });
    const [x, v] = parts[parts.length - 1].slice(-1)[0];
    if (t.stopped) el('path', { d: `M${tidy(X(x) - 3)} ${tidy(Y(v) - 3)}l6 6m0 -6l-6 6`, stroke: 'var(--gold)', 'stroke-width': 1.6 }, marks);
    yield;
  }
  legend(div, [['var(--ink)', 'best'], ...seen(), ...(copies ? [['var(--paper)', '○ copied another trial']] : [])]);
}

function* drawPareto(div) {
  const section = id('pareto').parentElement;
  if (section.hidden !== S.objectives.length < 2) section.hidden = S.objectives.length < 2;
  if (S.objectives.length < 2) return;
  const [a, b] = S.objectives;
  const trials = S.trials.filter((t) => t.values[0] !== null && t.values[1] !== null);
  if (!trials.length) return empty(div, 'No trial has values of both objectives yet.');
  const less = (o, x, y) => (o.min ? x < y : x > y);
  const beats = (t, u) => !S.objectives.some((o, i) => less(o, u.values[i], t.values[i])) && S.objectives.some((o, i) => less(o, t.values[i], u.values[i]));
  const front = [], best = new Set();
  for (const t of trials) {
    if (!trials.some((u) => beats(u, t))) front.push(t), best.add(t);
    yield;
  }
  front.sort((t, u) => t.values[0] - u.values[0]);
  const w = widthOf(div, 1180), s = svg(div, w, 320);
  const [X, Y, marks] = axes(s, { w, h: 320 }, linear(`${a.metric} (${a.min ? 'smaller' : 'larger'} is better)`, range(trials.map((t) => t.values[0])), w / 100), linear(`${b.metric} (${b.min ? 'smaller' : 'larger'} is better)`, range(trials.map((t) => t.values[1])), 7));
  el('polyline', { points: front.map((t) => X(t.values[0]) + ',' + Y(t.values[1])).join(' '), fill: 'none', stroke: 'var(--red)', 'stroke-width': 1.5 }, marks);
  keepMarks(marks, trials);
  for (const t of trials) {
    mark('circle', { cx: X(t.values[0]), cy: Y(t.values[1]), r: 3.5, fill: best.has(t) ? 'var(--red)' : color(t), 'fill-opacity': 0.8 }, marks, t);
    yield;
  }
  legend(div, [['var(--red)', `Pareto front (${front.length} of ${trials.length}): no other trial is better in one objective and at least as good in the others`]]);
}

function* drawSlices(div, best) {
  const keys = varied(), trials = S.trials.filter((t) => val(t) !== null);
  if (!keys.length || !trials.length) return empty(div, 'Nothing varies yet.');
  const grid = html('div', div, undefined, 'small');
  const y = linear(metric, clipped(trials.map(val)), 6);
  // So many points in all that a browser draws them soon.
  const every = trials.length * keys.length / 4000;
  for (const k of keys) {
    const has = trials.filter((t) => (t === best || isOneOf(t, every)) && t.config[k] !== undefined && t.config[k] !== null);
    const size = { w: 330, h: 210, l: 52 };
    const s = svg(html('div', grid), size.w, size.h);
    const [X, Y, marks] = axes(s, size, scaleOf(k, has.map((t) => t.config[k]), isLog(k)), y);
    keepMarks(marks, has);
    for (const t of has) {
      mark('circle', { cx: X(t.config[k]), cy: Y(val(t)), r: t === best ? 4.5 : 2.6, fill: t === best ? 'var(--ink)' : color(t), 'fill-opacity': t === best ? 1 : 0.7 }, marks, t);
      yield;
    }
  }
  legend(div, [['var(--ink)', 'best'], ...seen()]);
}

/// Ranges that were marked on the axes of the parallel coordinates, from 0 to 1, by column.
const brushes = new Map();
let brushing = false;  // while a range is being marked, the axes stay as they are
/// Makes an axis that a range can be marked on: by dragging, or with the arrow keys; Escape or a double click clears it.
function brush(s, column, x, top, height) {
  const [lo, hi] = brushes.get(column) || [0, 1];
  const area = el('rect', { x: x - 11, y: top, width: 22, height, fill: 'transparent', tabindex: 0, role: 'slider', class: 'brush',
    'aria-label': `Range of ${column}: arrow keys move its lower end, with Shift its upper end`, 'aria-valuemin': 0, 'aria-valuemax': 100,
    'aria-valuenow': Math.round(lo * 100), 'aria-valuetext': `${Math.round(lo * 100)} to ${Math.round(hi * 100)} percent` }, s);
  if (brushes.has(column)) el('rect', { x: x - 6, y: top + (1 - hi) * height, width: 12, height: Math.max(2, (hi - lo) * height), fill: 'var(--blue)', 'fill-opacity': 0.3, 'pointer-events': 'none' }, s);
  const set = (a, b) => {
    if (b - a > 0.99) brushes.delete(column); else brushes.set(column, [a, b]);
    redraw('parallel');
  };
  const at = (event) => { const box = area.getBoundingClientRect(); return Math.max(0, Math.min(1, 1 - (event.clientY - box.top) / box.height)); };
  area.onpointerdown = (event) => {
    const from = at(event);
    area.setPointerCapture(event.pointerId);
    brushing = true;
    area.onpointercancel = () => { brushing = false; };
    area.onpointerup = (end) => { brushing = false; const to = at(end); if (Math.abs(to - from) > 0.01) set(Math.min(from, to), Math.max(from, to)); };
  };
  area.ondblclick = () => set(0, 1);
  area.onkeydown = (event) => {
    const by = { ArrowUp: 0.05, ArrowDown: -0.05 }[event.key], keep = (v) => Math.max(0, Math.min(1, v));
    if (event.key === 'Escape') set(0, 1);
    if (by === undefined) return;
    event.preventDefault();
    if (event.shiftKey) set(lo, Math.max(lo, keep(hi + by))); else set(Math.min(hi, keep(lo + by)), hi);
  };
  return area;
}

function* drawParallel(div, best) {
  const keys = varied(), trials = S.trials.filter((t) => val(t) !== null).slice(0, 2000);
  if (!keys.length || !trials.length) return empty(div, 'Nothing varies yet.');
  const columns = [...keys, metric], w = Math.max(widthOf(div, 1180), 90 * columns.length), h = 300;
  const gap = (w - 110) / Math.max(1, columns.length - 1);
  const s = svg(div, w, h, 'group');  // an image would have nothing inside that takes the focus
  const get = (t, i) => (i === keys.length ? val(t) : t.config[keys[i]]);
  const known = (v) => v !== undefined && v !== null;
  const scales = columns.map((k, i) => scaleOf(k, trials.map((t) => get(t, i)).filter(known), i === keys.length ? false : isLog(k)));
  const Y = (i, v) => tidy(h - 30 - scales[i].at(v) * (h - 70)), at = (i) => tidy(50 + i * gap);
  const ranked = [...trials].sort((a, b) => (better(val(a), val(b)) ? 1 : -1));
  const inside = (t) => columns.every((k, i) => {
    if (!brushes.has(k)) return true;
    const [lo, hi] = brushes.get(k), v = get(t, i);
    return known(v) && scales[i].at(v) >= lo - 1e-9 && scales[i].at(v) <= hi + 1e-9;
  });
  const lines = el('g', {}, s);
  keepMarks(lines, trials.filter(inside));
  let kept = 0;
  for (const [place, t] of ranked.entries()) {
    if (!inside(t)) continue;
    ++kept;
    // In steps: else all lines change when one trial gets better.
    const q = ranked.length < 2 ? 1 : Math.round(20 * place / (ranked.length - 1)) / 20;
    const points = columns.map((k, i) => (known(get(t, i)) ? `${at(i)},${Y(i, get(t, i))}` : null)).filter(Boolean);
    mark('polyline', { points: points.join(' '), fill: 'none', stroke: t === best ? 'var(--red)' : tone(q), 'stroke-width': t === best ? 2.6 : 1.2, 'stroke-opacity': (0.45 + 0.5 * q).toFixed(2) }, lines, t);
    yield;
  }
  columns.forEach((k, i) => {
    const x = at(i);
    const axis = el('g', {}, s);
    el('line', { x1: x, x2: x, y1: 40, y2: h - 30, stroke: 'var(--soft)' }, axis);
    el('text', { x, y: 18, 'text-anchor': 'middle', class: 'name' }, axis, scales[i].name);
    for (const m of scales[i].ticks) el('text', { x: x + 5, y: Y(i, m) + 4 }, axis, fmt(m));
    brush(el('g', {}, s), k, x, 40, h - 70);
  });
  legend(div, [['var(--red)', 'best'], [tone(1), 'good'], [tone(0), 'bad']]);
  html('div', div, brushes.size ? `${kept} of ${trials.length} trials are within the marked ranges; a double click on an axis clears its range.`
    : 'Drag along an axis to mark a range: only trials within it are drawn.', 'facts', { id: 'brushed' });
}

const chosenPair = [];
/// Two lists to choose from. They stay while they are the same: one of them may be open.
function drawChoices(pair, keys) {
  const shown = JSON.stringify([keys, chosenPair]);
  if (pair.dataset.shown === shown && pair.childElementCount) return;
  pair.dataset.shown = shown;
  pair.replaceChildren();
  const choice = (place) => {
    const select = html('select', pair, undefined, '', { 'aria-label': place ? 'Second parameter' : 'First parameter' });
    for (const k of keys) html('option', select, k).selected = chosenPair[place] === k;
    select.onchange = () => { chosenPair[place] = select.value; redraw('contour'); };
  };
  choice(0);
  pair.append(' against ');
  choice(1);
}
function* drawContour(div) {
  const keys = varied().filter((k) => S.trials.every((t) => t.config[k] === undefined || typeof t.config[k] === 'number'));
  const trials = S.trials.filter((t) => val(t) !== null);
  const pair = id('pair');
  if (keys.length < 2 || trials.length < 4) return empty(div, 'It takes two parameters that are numbers, and some trials.', pair.replaceChildren());
  const byWeight = [...S.importance.map((x) => x[0]).filter((k) => keys.includes(k)), ...keys];
  if (!chosenPair.length) chosenPair.push(byWeight[0], byWeight.find((k) => k !== byWeight[0]));
  drawChoices(pair, keys);
  const [kx, ky] = chosenPair, has = trials.filter((t) => t.config[kx] !== undefined && t.config[ky] !== undefined);
  const sx = scaleOf(kx, has.map((t) => t.config[kx]), isLog(kx)), sy = scaleOf(ky, has.map((t) => t.config[ky]), isLog(ky));
  const w = widthOf(div, 640), s = svg(div, w, 320), [lo, hi] = clipped(has.map(val)), n = 32;
  // Shepard's interpolation: the mean of all trials, weighted by the inverse fourth power of their distance.
  const spots = has.map((t) => [sx.at(t.config[kx]), sy.at(t.config[ky]), val(t)]);
  const field = (u, v) => {
    let sum = 0, total = 0;
    for (const [x, y, value] of spots) {
      const d = (x - u) ** 2 + (y - v) ** 2 + 1e-4;
      sum += value / (d * d);
      total += 1 / (d * d);
    }
    return sum / total;
  };
  const shade = (v) => { const q = Math.max(0, Math.min(1, (v - lo) / ((hi - lo) || 1))), good = smaller() ? 1 - q : q; return tone(Math.round(good * 10) / 10); };
  const cw = (w - 76) / n, ch = 264 / n, ground = el('g', {}, s);
  for (let i = 0; i < n; ++i)
    for (let j = 0; j < n; ++j) {
      el('rect', { x: tidy(62 + i * cw), y: tidy(286 - (j + 1) * ch), width: tidy(cw + 0.6), height: tidy(ch + 0.6), fill: shade(field((i + 0.5) / n, (j + 0.5) / n)) }, ground);
      yield;
    }
  const [X, Y, marks] = axes(s, { w, h: 320 }, sx, sy);
  keepMarks(marks, has);
  for (const t of has) {
    mark('circle', { cx: X(t.config[kx]), cy: Y(t.config[ky]), r: 3, fill: shade(val(t)), stroke: 'var(--ink)', 'stroke-width': 0.8 }, marks, t);
    yield;
  }
  legend(div, [[shade(smaller() ? lo : hi), `good ${metric}, ${fmt(smaller() ? lo : hi)}`], [shade(smaller() ? hi : lo), `bad, ${fmt(smaller() ? hi : lo)}`]]);
  html('div', div, 'Between trials the value is interpolated.', 'facts');
}

function* drawImportance(div) {
  if (!S.importance.length) return empty(div, 'Known when ten results are there, for a space whose parameters the study has stored.');
  const h = Math.max(60, S.importance.length * 26 + 10), w = widthOf(div, 640), s = svg(div, w, h);
  S.importance.forEach(([k, v], i) => {
    const y = 8 + i * 26;
    el('text', { x: 150, y: y + 13, 'text-anchor': 'end' }, s, k);
    el('rect', { x: 160, y, width: Math.max(1, v * (w - 230)), height: 18, rx: 2, fill: 'var(--blue)' }, s);
    el('text', { x: 166 + v * (w - 230), y: y + 13 }, s, (100 * v).toFixed(1) + ' %');
  });
  html('div', div, `Share of the variance of ${first.metric} over the whole space (fANOVA).`, 'facts');
}

function* drawTimeline(div) {
  const runs = S.trials.flatMap((t) => t.runs.map((r) => ({ t, a: r[0], b: r[1], slot: Number(r[2]) || 0 })));
  if (!runs.length) return empty(div, 'Nothing has run yet.');
  const a = range(runs.map((r) => r.a))[0], b = Math.max(...runs.map((r) => r.b)), n = Math.max(...runs.map((r) => r.slot)) + 1;
  const whole = (b - a) || 1, h = Math.min(420, n * 22 + 44), rh = (h - 44) / n, w = widthOf(div, 1180), s = svg(div, w, h);
  const X = (v) => tidy(62 + (v - a) / whole * (w - 76));
  const marks = el('g', {}, s);
  keepMarks(marks, S.trials);
  let busy = 0;
  for (const r of runs) {
    busy += r.b - r.a;
    mark('rect', { x: X(r.a), y: tidy(4 + r.slot * rh), width: tidy(Math.max(0.8, X(r.b) - X(r.a) - 0.4)), height: tidy(Math.max(1, rh - 3)), fill: color(r.t), 'fill-opacity': 0.85 }, marks, r.t);
    yield;
  }
  for (let i = 0; i < n && n <= 20; ++i) el('text', { x: 56, y: 8 + i * rh + rh / 2, 'text-anchor': 'end' }, s, 'slot ' + i);
  for (const v of ticks(0, whole, w / 100)) el('text', { x: X(a + v), y: h - 20, 'text-anchor': 'middle' }, s, fmt(v));
  el('text', { x: w / 2, y: h - 5, 'text-anchor': 'middle' }, s, 'seconds since the first trial started');
  legend(div, seen());
  // Of some trials alone it cannot be told.
  if (S.trials.length === S.total) html('div', div, `Slots in use ${(100 * busy / (whole * n)).toFixed(1)} % of ${fmt(Math.round(whole * 100) / 100)} s.`, 'facts');
}

const kPlots = { history: drawHistory, curves: drawCurves, pareto: drawPareto, slices: drawSlices, parallel: drawParallel,
  contour: drawContour, importance: drawImportance, timeline: drawTimeline };
