// The study, and what all plots are drawn with: scales, axes, legends. report-html and the dashboard
// share this file, pen.js and plots.js; both define showTrial() and redraw().
'use strict';
let S = null, first = null, metric = null;
/// The metric that was chosen if the study has it, else that of its objective.
const metricOf = (study, chosen) => study.metrics.includes(chosen) ? chosen : (study.objectives[0] || { metric: study.metrics[0] }).metric;
/// From now on this study is drawn.
function useStudy(study, chosen) {
  S = study;
  first = S.objectives[0];
  metric = metricOf(S, chosen);
}
const id = (name) => document.getElementById(name);
const smaller = () => { const o = S.objectives.find((x) => x.metric === metric); return !o || o.min; };
const better = (a, b) => (smaller() ? a < b : a > b);
const val = (t) => { const v = t.metrics[metric]; return v === undefined ? null : v; };
const curve = (t) => (t.curves[metric] || []).filter((p) => p[1] !== null);
const color = (t) => t.status === 'ERROR' ? 'var(--red)' : t.stopped ? 'var(--gold)'
  : t.status === 'TERMINATED' ? 'var(--blue)' : 'var(--green)';
const fmt = (v) => v === null || v === undefined ? '' : typeof v !== 'number' ? String(v)
  : Number.isInteger(v) ? String(v) : Number(v.toPrecision(5)).toString();
const pairs = (o) => Object.entries(o || {}).map(([k, v]) => k + '=' + fmt(v)).join(', ');
const label = (t) => `trial ${t.n}: ${metric ? metric + ' ' + fmt(val(t)) : ''} ${t.status}`
  + `${t.stopped ? ' (stopped early)' : ''}\n${pairs(t.config)}${t.why ? '\n' + t.why : ''}`;

function bestTrial() {
  let best = null;
  for (const t of S.rows || S.trials) if (val(t) !== null && (best === null || better(val(t), val(best)))) best = t;
  return best;
}

/// A part that scrolls by itself can also be scrolled by keys.
function scrolling(parent, title) {
  const e = html('div', parent, undefined, 'rows');
  e.tabIndex = 0;
  e.setAttribute('role', 'group');
  e.setAttribute('aria-label', title || parent.closest('section')?.querySelector('h2')?.textContent || 'Table');
  return e;
}
/// How wide parts are, as the browser tells it: asking in the middle of a drawing would lay out the page each time.
const rooms = new ResizeObserver((entries) => { for (const e of entries) e.target.room = Math.round(e.contentRect.width); });
/// As wide as there is room, so that texts keep their size on a phone.
function widthOf(div, most) {
  if (div.room === undefined) rooms.observe(div);
  div.room ??= div.clientWidth;
  return Math.max(320, Math.min(most, div.room || most));
}
function svg(parent, w, h, role = 'img') {
  const title = parent.closest('section')?.querySelector('h2')?.textContent || 'Chart';
  return el('svg', { viewBox: `0 0 ${w} ${h}`, role, 'aria-label': title }, parent);
}
/// From bad (0) to good (1), on a light page and on a dark one.
const tone = (good) => `color-mix(in srgb, var(--blue) ${Math.round(15 + 85 * good)}%, var(--line))`;
const empty = (parent, why) => html('div', parent, why, 'empty');

/// An element that stands for a trial: its text is shown when it is pointed at, and all of it when it is clicked.
function mark(name, attributes, parent, t) {
  attributes.class = 'hit';
  const e = el(name, attributes, parent, undefined, t.n);
  e.drawn.trial = t;
  return e;
}
/// Before the marks of these trials are drawn: those of others go.
const keepMarks = (parent, trials) => keep(parent, trials.map((t) => t.n));
const trialAt = (event) => event.target.drawn && event.target.drawn.trial;
document.addEventListener('click', (event) => { if (trialAt(event)) showTrial(trialAt(event)); });
// Thousands of marks have a text, of which one is read: it is made then.
document.addEventListener('pointerover', (event) => {
  const t = trialAt(event), e = event.target;
  if (t) (e.firstChild || e.appendChild(document.createElementNS(NS, 'title'))).textContent = label(t);
});

function legend(parent, entries) {
  const key = html('div', parent, undefined, 'facts key');
  for (const [fill, text] of entries) {
    const s = html('span', key), i = html('i', s);
    if (i.dataset.fill !== fill) i.style.background = i.dataset.fill = fill;
    html('b', s, text);
  }
}
const outcomes = [['var(--blue)', 'ran to its end'], ['var(--gold)', 'stopped early'],
  ['var(--red)', 'failed'], ['var(--green)', 'not ended']];
const seen = () => outcomes.filter(([c]) => S.trials.some((t) => color(t) === c));

function range(list) {
  let a = Infinity, b = -Infinity;
  for (const v of list) { if (v < a) a = v; if (v > b) b = v; }
  return a === b ? [a - 0.5, b + 0.5] : [a, b];
}
/// A few far-off values must not flatten the rest.
function clipped(list) {
  const s = [...list].sort((a, b) => a - b), q = (p) => s[Math.floor(p * (s.length - 1))];
  const lo = q(0.02), hi = q(0.98), w = (hi - lo) || 1;
  return range(s.filter((v) => v >= lo - 2 * w && v <= hi + 2 * w));
}
function ticks(a, b, n, whole) {
  let step = Math.pow(10, Math.floor(Math.log10((b - a) / n)));
  step *= [1, 2, 5, 10].find((k) => (b - a) / (k * step) <= n);
  if (whole) step = Math.max(1, Math.round(step));
  const out = [];
  for (let v = Math.ceil(a / step - 1e-9) * step; v <= b + step * 1e-9; v += step) out.push(Number(v.toPrecision(12)));
  return out;
}
function logTicks(a, b) {
  const out = [];
  for (let e = Math.ceil(Math.log10(a) - 1e-9); e <= Math.log10(b) + 1e-9; ++e) out.push(Number(Math.pow(10, e).toPrecision(12)));
  return out.length > 1 ? out : [a, b];
}

/// What one quantity looks like on an axis: numbers, logarithms, or names side by side.
function scaleOf(name, values, isLog) {
  if (values.every((v) => typeof v === 'number')) {
    const [a, b] = range(values);
    const log = a > 0 && (isLog === undefined ? b / a > 50 : isLog);
    const f = log ? Math.log10 : (v) => v;
    const whole = values.every(Number.isInteger);
    return { name: name + (log ? ' (log)' : ''), at: (v) => (f(v) - f(a)) / (f(b) - f(a)),
      ticks: log ? logTicks(a, b) : ticks(a, b, 6, whole), numeric: true };
  }
  const names = [...new Set(values.map(String))].sort();
  return { name, at: (v) => names.length < 2 ? 0.5 : names.indexOf(String(v)) / (names.length - 1),
    ticks: names.slice(0, 12), numeric: false };
}
const parameter = (k) => S.parameters.find((p) => p.path === k);
const isLog = (k) => { const p = parameter(k); return p ? p.log : undefined; };
/// One of so many trials, as if by lot but each time the same ones, whichever others there are.
const isOneOf = (t, every) => every <= 1 || (Math.imul(t.n + 1, 0x9e3779b1) >>> 0) < 2 ** 32 / every;
/// Parameters that have more than one value; several plots ask for them.
function varied() {
  S.varied ??= [...new Set(S.trials.flatMap((t) => Object.keys(t.config || {})))]
    .filter((k) => { const v = (S.trials[0].config || {})[k]; return S.trials.some((t) => (t.config || {})[k] !== v); });
  return S.varied;
}

/// Tenths of a pixel do: longer numbers take longer to write and to read, and differ when nobody can see it.
const tidy = (v) => Math.round(v * 10) / 10;
/// Axes with their names; returns how to place values, and a group for the marks.
function axes(s, size, x, y) {
  const { w, h, l, r, t, b } = { w: 640, h: 280, l: 62, r: 14, t: 22, b: 34, ...size };
  const X = (v) => tidy(l + x.at(v) * (w - l - r)), Y = (v) => tidy(h - b - y.at(v) * (h - t - b));
  const g = el('g', {}, s);
  const inside = (v) => Math.max(t, Math.min(h - b, Y(v)));
  for (const v of y.ticks) {
    el('line', { x1: l, x2: w - r, y1: Y(v), y2: Y(v), class: 'axis' }, g);
    el('text', { x: l - 6, y: Y(v) + 4, 'text-anchor': 'end' }, g, fmt(v));
  }
  for (const v of x.ticks) el('text', { x: X(v), y: h - b + 15, 'text-anchor': 'middle' }, g, fmt(v));
  el('text', { x: (l + w - r) / 2, y: h - 3, 'text-anchor': 'middle' }, g, x.name);
  el('text', { x: 2, y: 11 }, g, y.name);
  return [X, inside, el('g', {}, s)];
}
const linear = (name, [a, b], n = 6, whole = false) =>
  ({ name, at: (v) => (v - a) / ((b - a) || 1), ticks: ticks(a, b, n, whole), numeric: true });
