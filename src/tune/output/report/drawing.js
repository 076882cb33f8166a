// The study, and what all plots are drawn with: scales, axes, legends. report-html and the dashboard
// share this file and plots.js; both define showTrial() and redraw().
'use strict';
const NS = 'http://www.w3.org/2000/svg';
let S = null, first = null, metric = null;
/// From now on this study is drawn, by the metric that was chosen if it has that.
function useStudy(study, chosen) {
  S = study;
  first = S.objectives[0];
  metric = S.metrics.includes(chosen) ? chosen : first ? first.metric : S.metrics[0];
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
  for (const t of S.trials) if (val(t) !== null && (best === null || better(val(t), val(best)))) best = t;
  return best;
}

function el(name, attributes, parent, text) {
  const e = document.createElementNS(NS, name);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  if (text !== undefined) e.textContent = text;
  parent.appendChild(e);
  return e;
}
function html(name, parent, text, className) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  parent.appendChild(e);
  return e;
}
/// A part that scrolls by itself can also be scrolled by keys.
function scrolling(parent, title) {
  const e = html('div', parent, undefined, 'rows');
  e.tabIndex = 0;
  e.setAttribute('role', 'group');
  e.setAttribute('aria-label', title || parent.closest('section')?.querySelector('h2')?.textContent || 'Table');
  return e;
}
/// As wide as there is room, so that texts keep their size on a phone.
const widthOf = (div, most) => Math.max(320, Math.min(most, div.clientWidth || most));
function svg(parent, w, h) {
  const title = parent.closest('section')?.querySelector('h2')?.textContent || 'Chart';
  return el('svg', { viewBox: `0 0 ${w} ${h}`, role: 'img', 'aria-label': title }, parent);
}
/// From bad (0) to good (1), on a light page and on a dark one.
const tone = (good) => `color-mix(in srgb, var(--blue) ${Math.round(15 + 85 * good)}%, var(--line))`;
const empty = (parent, why) => html('div', parent, why, 'empty');

/// Shows the trial's name, and all of it when it is clicked.
function mark(e, t) {
  el('title', {}, e, label(t));
  e.classList.add('hit');
  e.addEventListener('click', () => showTrial(t));
  return e;
}

function legend(parent, entries) {
  const key = html('div', parent, undefined, 'facts key');
  for (const [fill, text] of entries) {
    const s = html('span', key);
    html('i', s).style.background = fill;
    s.append(text);
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
const varied = () => [...new Set(S.trials.flatMap((t) => Object.keys(t.config || {})))]
  .filter((k) => new Set(S.trials.map((t) => (t.config || {})[k])).size > 1);

/// Axes with their names; returns how to place values.
function axes(s, size, x, y) {
  const { w, h, l, r, t, b } = { w: 640, h: 280, l: 62, r: 14, t: 22, b: 34, ...size };
  const X = (v) => l + x.at(v) * (w - l - r), Y = (v) => h - b - y.at(v) * (h - t - b);
  const inside = (v) => Math.max(t, Math.min(h - b, Y(v)));
  for (const v of y.ticks) {
    el('line', { x1: l, x2: w - r, y1: Y(v), y2: Y(v), class: 'axis' }, s);
    el('text', { x: l - 6, y: Y(v) + 4, 'text-anchor': 'end' }, s, fmt(v));
  }
  for (const v of x.ticks) el('text', { x: X(v), y: h - b + 15, 'text-anchor': 'middle' }, s, fmt(v));
  el('text', { x: (l + w - r) / 2, y: h - 3, 'text-anchor': 'middle' }, s, x.name);
  el('text', { x: 2, y: 11 }, s, y.name);
  return [X, inside];
}
const linear = (name, [a, b], n = 6, whole = false) =>
  ({ name, at: (v) => (v - a) / ((b - a) || 1), ticks: ticks(a, b, n, whole), numeric: true });
