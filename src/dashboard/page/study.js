// The page of one study: the plots that report-html has, live, and the table of its trials.
'use strict';
let study = null;
const showTrial = (t) => { location.hash = trialLink(S.name, t.n); };

/// Of a large study only the plots in view are drawn, the others when they come into view. A small
/// one is drawn whole, so that it can be searched and printed.
const kSmall = 5000;
const kPlots = { history: drawHistory, curves: drawCurves, pareto: drawPareto, slices: drawSlices, parallel: drawParallel,
  contour: drawContour, importance: drawImportance, timeline: drawTimeline };
const inView = new Set(), stale = new Set();
const watcher = new IntersectionObserver((entries) => {
  for (const e of entries) if (e.isIntersecting) inView.add(e.target.id); else inView.delete(e.target.id);
  if (S) drawStale();
}, { rootMargin: '100px' });

/// One plot in each frame, so that the page stays responsive.
let drawing = false;
async function drawStale() {
  if (drawing) return;
  drawing = true;
  try {
    for (;;) {
      const whole = S.trials.length * (S.parameters.length + 1) < kSmall;
      const name = Object.keys(kPlots).find((one) => id(one) && stale.has(one) && !(one === 'parallel' && brushing) && (whole || inView.has(one)));
      if (!name) return;
      stale.delete(name);
      id(name).replaceChildren();
      kPlots[name](id(name), bestTrial());
      if (!whole) await new Promise((resolve) => { setTimeout(resolve, 0); });
    }
  } finally { drawing = false; }
}
function redraw() {
  for (const name of Object.keys(kPlots)) stale.add(name);
  return drawStale();
}
function watchPlots() {
  watcher.disconnect();
  inView.clear();
  for (const name of Object.keys(kPlots)) if (id(name)) watcher.observe(id(name));
}

function studyFacts(now, best, drawn) {
  const counts = Object.entries(now.counts).map(([k, v]) => v + ' ' + k).join(', ');
  const facts = [`${now.state}; ${now.program ? now.program + '; ' : ''}begun ${when(now.created)}, ran ${fmt(Math.round(now.elapsed * 10) / 10)} s; search ${now.search}, scheduler ${now.scheduler}`,
    `${now.total} trials${now.planned > now.total ? ' of ' + now.planned : ''}: ${counts}${now.early ? ', ' + now.early + ' stopped early' : ''}`
      + `${drawn < now.total ? `; the best and some others, ${drawn} in all, are drawn` : ''}`];
  if (now.read < now.total) facts.push(`Reading the study: ${now.read} of ${now.total} trials so far are shown`);
  if (best) facts.push(`Best ${metric} ${fmt(val(best))}: trial ${best.n}, ${pairs(best.config)}`);
  pageHead(now.name, facts);
}

/// The newest state of the study, in S, with the curves of one metric; importance comes when it is ready.
async function loadStudy(name, chosen, importance) {
  const likely = chosen || (S && S.name === name ? metric : null);
  const [data, early] = await Promise.all([get('study', { name }), likely ? get('curves', { name, metric: likely }) : {}]);
  useStudy({ ...data, importance }, chosen);
  const curves = metric && metric !== likely ? await get('curves', { name, metric }) : early;
  for (const t of S.trials) t.curves = { [metric]: curves[t.n] || [] };
}

function studyPage(name) {
  const tools = html('div', html('section', id('content'), undefined, 'wide'), undefined, 'tools');
  const label = html('label', tools, 'Metric ');
  const choice = html('select', label);
  choice.id = 'metric';
  let chosen = null, importance = [], table = null, weighed = -1;
  const stop = button(tools, 'Stop the study', async () => {
    if (await ask(`Stop the study ${name}? Its trials end; \`kolo resume\` can continue it.`, 'Stop it')) act('stop', { study: name });
  }, 'grave');
  stop.id = 'stop';
  const add = button(tools, 'Add trials', async () => {
    const count = await ask(`How many trials more than ${S.planned} shall ${name} have?`, 'Add them', 10);
    if (count) act('add', { study: name, count });
  });
  add.id = 'add';
  part('Optimisation history', { name: 'history' });
  part('Learning curves', { name: 'curves' });
  part('Pareto front', { wide: true, name: 'pareto' });
  part('Slices: each parameter against the metric', { wide: true, name: 'slices' });
  part('Parallel coordinates', { wide: true, name: 'parallel' });
  html('div', part('Two parameters together', { name: 'pairs' })).id = 'pair';
  html('div', id('pairs')).id = 'contour';
  part('Importance of parameters', { name: 'importance' });
  part('Timeline of slots', { wide: true, name: 'timeline' });
  const view = { filter: '', sort: '', desc: false, offset: 0, picked: new Set() };
  const tableBox = part('Trials', { wide: true, name: 'trials' });
  chosenPair.length = 0;
  brushes.clear();
  watchPlots();

  async function weigh() {
    const ended = (S.counts.TERMINATED || 0) + (S.counts.ERROR || 0);
    if (ended === weighed) return;
    weighed = ended;
    importance = await get('importance', { name });
    if (S && S.name === name) { S.importance = importance; stale.add('importance').add('contour'); drawStale(); }
  }
  async function refresh() {
    await loadStudy(name, chosen, importance);
    if (choice.options.length !== S.metrics.length) {
      choice.replaceChildren();
      for (const m of S.metrics) html('option', choice, m).selected = m === metric;
    }
    stop.hidden = add.hidden = about.read_only || S.state !== 'running';
    studyFacts(S, bestTrial(), S.trials.length);
    await redraw();
    if (!table) table = trialsTable(tableBox, name, view);
    await table.draw();
    weigh().catch(() => {});
  }
  /// The few words at the top, at once; plots and table follow as fast as they can be drawn.
  async function glance() {
    if (!S || S.name !== name) return;
    const now = await get('summary', { name });
    if (S && S.name === name && id('stop') === stop) studyFacts(now, first && metric === first.metric ? now.best : bestTrial(), S.trials.length);
  }
  choice.onchange = () => { chosen = choice.value; refresh(); };
  return { refresh, glance: throttled(() => glance().catch(() => {})), concerns: (change) => change.study === name };
}

/// Some trials side by side: what differs in their configurations, and their curves.
function comparePage(name, numbers) {
  const configBox = part('Configurations', { wide: true, name: 'configurations' });
  part('Learning curves', { wide: true, name: 'curves' });
  async function refresh() {
    const trials = await Promise.all(numbers.map((trial) => get('trial', { name, trial })));
    useStudy({ ...trials[0].study, trials, importance: [] }, null);
    pageHead(`${name}: trials ${numbers.join(', ')}`, []);
    configBox.replaceChildren();
    const keys = [...new Set(trials.flatMap((t) => Object.keys(t.config)))];
    const rows = [['status', ...trials.map((t) => t.status)], ['iterations', ...trials.map((t) => t.iterations)],
      ...S.metrics.map((m) => [m, ...trials.map((t) => t.metrics[m])]),
      ...keys.map((k) => [new Set(trials.map((t) => t.config[k])).size > 1 ? k + ' ≠' : k, ...trials.map((t) => t.config[k])])];
    simpleTable(configBox, ['', ...trials.map((t) => 'trial ' + t.n)], rows);
    id('curves').replaceChildren();
    drawCurves(id('curves'), bestTrial());
    link(html('p', configBox), 'Back to the study', studyLink(name));
  }
  return { refresh, concerns: (change) => change.study === name };
}
