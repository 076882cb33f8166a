// The page of one study: the plots that report-html has, live, and the table of its trials.
'use strict';
let study = null;
const showTrial = (t) => { location.hash = trialLink(S.name, t.n); };

/// Of a large study only the plots in view are drawn, the others when they come into view. A small
/// one is drawn whole, so that it can be searched and printed.
const kSmall = 5000;
const inView = new Set(), stale = new Set();
const isWhole = () => S.trials.length * (S.parameters.length + 1) < kSmall;
const isSeen = (name) => inView.has(name) || isWhole();
const watcher = new IntersectionObserver((entries) => {
  for (const e of entries) if (e.isIntersecting) inView.add(e.target.id); else inView.delete(e.target.id);
  if (S) drawStale();
  if (page.seen) page.seen();
}, { rootMargin: '100px' });

const takesNoRoom = (box) => { if (box.className) box.removeAttribute('class'); };
/// Plots that show an older state, one after the other. When another study or metric comes meanwhile, the plot under way is begun again.
function* stalePlots() {
  for (;;) {
    const name = Object.keys(kPlots).find((one) => id(one) && stale.has(one) && !(one === 'parallel' && brushing) && isSeen(one));
    if (!name) return;
    stale.delete(name);
    const box = id(name), shown = S;
    takesNoRoom(box);
    for (const _ of over(box, kPlots[name], bestTrial())) {
      yield;
      if (S === shown && box.isConnected && !stale.has(name)) continue;
      stale.add(name);
      break;
    }
  }
}
let drawing = null;
function drawStale() {
  drawing ||= inSlices(stalePlots()).finally(() => { drawing = null; });
  return drawing;
}
/// Draws one plot again, or all.
function redraw(only) {
  for (const name of only ? [only] : Object.keys(kPlots)) stale.add(name);
  return drawStale();
}
function watchPlots() {
  watcher.disconnect();
  inView.clear();
  for (const name of [...Object.keys(kPlots), 'trials']) {
    if (!id(name)) continue;
    id(name).className = 'unseen';  // takes room, else everything would be in view as long as nothing is drawn
    watcher.observe(id(name));
  }
}

/// Which trials are drawn, if not all.
function drawnFact() {
  const drawn = S.trials.length, held = S.matching < S.read ? `; the filter holds for ${S.matching}` : '';
  return drawn < S.matching ? `${held}; the best and some others, ${drawn} in all, are drawn` : held;
}
function studyFacts(now, best) {
  const counts = Object.entries(now.counts).map(([k, v]) => v + ' ' + k).join(', ');
  const facts = [`${now.state}; ${now.program ? now.program + '; ' : ''}begun ${when(now.created)}, ran ${fmt(Math.round(now.elapsed * 10) / 10)} s; search ${now.search}, scheduler ${now.scheduler}`,
    `${now.total} trials${now.planned > now.total ? ' of ' + now.planned : ''}: ${counts}${now.early ? ', ' + now.early + ' stopped early' : ''}` + drawnFact()];
  if (now.read < now.total) facts.push(`Reading the study: ${now.read} of ${now.total} trials so far are shown`);
  if (best) facts.push(`Best ${metric} ${fmt(val(best))}: trial ${best.n}, ${pairs(best.config)}`);
  pageHead(now.name, facts);
}

/// The newest state of the study, in S, with the trials for which the filter holds and the curves of
/// one metric; importance comes when it is ready.
async function loadStudy(name, filter, chosen, importance) {
  const likely = chosen || (S && S.name === name ? metric : null);
  const [data, early] = await Promise.all([get('study', { name, filter }), likely ? get('curves', { name, metric: likely, filter }) : {}]);
  const shown = metricOf(data, chosen);
  const curves = shown && shown !== likely ? await get('curves', { name, metric: shown, filter }) : early;
  for (const t of data.trials) t.curves = { [shown]: curves[t.n] || [] };
  useStudy({ ...data, importance }, chosen);
}

function studyPage(name) {
  const top = html('section', id('content'), undefined, 'wide'), tools = html('div', top, undefined, 'tools');
  const label = html('label', tools, 'Metric ');
  const choice = html('select', label);
  choice.id = 'metric';
  let chosen = null, importance = [], weighed = -1, newest = { seq: -1 };
  const view = { filter: '', sort: '', desc: false, offset: 0, picked: new Set() };
  filterField(tools, top, name, view, () => refresh());
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
  const table = trialsTable(part('Trials', { wide: true, name: 'trials' }), name, view);
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
  /// Answers may overtake each other: an older one does not take the place of a newer one.
  function facts(now) {
    if (now.created === newest.created && now.seq < newest.seq) return;
    newest = now;
    studyFacts(now, first && metric === first.metric ? now.best : bestTrial());
  }
  async function refresh() {
    await loadStudy(name, view.filter, chosen, importance);
    if (choice.options.length !== S.metrics.length) {
      choice.replaceChildren();
      for (const m of S.metrics) html('option', choice, m).selected = m === metric;
    }
    stop.hidden = add.hidden = about.read_only || S.state !== 'running';
    facts(S);
    await redraw();
    await drawTable();
    weigh().catch(() => {});
  }
  /// The few words at the top, at once; plots and table follow as fast as they can be drawn.
  async function glance() {
    if (!S || S.name !== name) return;
    const now = await get('summary', { name });
    if (S && S.name === name && id('stop') === stop) facts(now);
  }
  async function drawTable() {
    table.stale = !isSeen('trials');
    if (table.stale) return;
    takesNoRoom(id('trials'));
    await table.draw();
  }
  choice.onchange = () => { chosen = choice.value; newest = { seq: -1 }; refresh(); };
  return { refresh, glance: throttled(() => glance().catch(() => {}), 10, 50), seen: () => { if (table.stale) drawTable(); }, concerns: (change) => change.study === name };
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
    await redraw('curves');
    link(html('p', configBox), 'Back to the study', studyLink(name));
  }
  return { refresh, concerns: (change) => change.study === name };
}
