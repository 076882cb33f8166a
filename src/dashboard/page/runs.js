// Runs of `kolo run`: which ranks there are, how fast they go, and who waits for whom.
'use strict';

const rate = (one, steps) => {
  const speed = steps ? one.steps_per_s : one.operations_per_s;
  return speed ? `${fmt(Math.round(speed * 10) / 10)} ${steps ? 'steps' : 'operations'}/s` : '';
};
const speedOf = (one) => rate(one, one.steps > 0);
const ranksText = (ranks) => (ranks.length === 1 ? 'rank ' : 'ranks ')
  + (ranks.length > 8 ? ranks.slice(0, 8).join(', ') + ` and ${ranks.length - 8} more` : ranks.join(', '));
const waitText = (run) => (run.waiting.length ? `${ranksText(run.waiting)} ${run.waiting.length === 1 ? 'waits' : 'wait'} for ${ranksText(run.awaited)}` : '');

function runsPage() {
  const box = part('Runs', { wide: true, name: 'runs' });
  async function refresh() {
    const { runs } = await get('runs');
    pageHead('Runs', [`${runs.length} under way`]);
    box.replaceChildren();
    if (!runs.length) return empty(box, 'Nothing runs now. `kolo run` starts a program as several ranks.');
    simpleTable(box, ['run', 'program', 'ranks', 'hosts', 'speed', 'who waits', 'begun'], runs.reverse().map((run) => [
      (td) => link(td, run.id.split('-')[0], '#/runs/' + encodeURIComponent(run.id)), run.program,
      run.running === run.size ? run.size : `${run.running} of ${run.size}`, run.hosts.join(', '), speedOf(run), waitText(run), when(run.started)]));
  }
  return { refresh, concerns: (change) => change.runs !== undefined };
}

/// The last ten seconds of the ranks, a tenth of a second each: whether they waited for others.
function drawRanks(box, ranks) {
  const shown = ranks.slice(0, 64), h = shown.length * 18 + 26, w = widthOf(box, 1180), s = svg(box, w, h);
  const X = (i) => 70 + i * (w - 84) / 100, cell = X(1) - X(0);
  shown.forEach((r, row) => {
    el('text', { x: 62, y: 14 + row * 18, 'text-anchor': 'end' }, s, 'rank ' + r.rank);
    const from = 100 - r.samples.length;
    for (const piece of r.samples.matchAll(/w+|\.+/g))
      el('rect', { x: X(from + piece.index), y: 3 + row * 18, width: cell * piece[0].length, height: 14, fill: piece[0][0] === 'w' ? 'var(--gold)' : 'var(--blue)' }, s);
  });
  for (const seconds of [10, 8, 6, 4, 2, 0]) el('text', { x: X(100 - 10 * seconds), y: h - 6, 'text-anchor': 'middle' }, s, seconds ? `−${seconds} s` : 'now');
  legend(box, [['var(--blue)', 'works'], ['var(--gold)', 'waits for other ranks']]);
  if (shown.length < ranks.length) html('div', box, `The first ${shown.length} of ${ranks.length} ranks are drawn.`, 'facts');
}

function runPage(name) {
  link(html('div', html('section', id('content'), undefined, 'wide'), undefined, 'tools'), 'All runs', '#/runs');
  const waits = part('Who waits for whom', { wide: true, name: 'waits' });
  const timeline = part('The last seconds', { wide: true, name: 'last-seconds' });
  const ranks = part('Ranks', { wide: true, name: 'ranks' });
  const events = part('What happened', { wide: true, name: 'events' });
  async function refresh() {
    const run = await get('run', { id: name });
    pageHead(run.program, [`process ${run.pid} on ${run.host}, begun ${when(run.started)}, in ${run.directory}`,
      ...(run.elastic ? [`elastic; group ${run.generation} of ${run.ranks.length} ranks`] : [])]);
    waits.replaceChildren();
    html('p', waits, run.waiting.length ? `Now ${waitText(run)}.` : 'Nobody waits for long.');
    timeline.replaceChildren();
    if (run.ranks.some((r) => r.samples)) drawRanks(timeline, run.ranks);
    else empty(timeline, 'The ranks have told nothing yet. Programs that call kolo::init() do, once a second, where there are at least two.');
    ranks.replaceChildren();
    const share = (r) => (r.samples ? `${Math.round(100 * (r.samples.split('w').length - 1) / r.samples.length)} %` : '');
    simpleTable(ranks, ['rank', ...(run.elastic ? ['worker'] : []), 'host', 'state', 'steps', 'operations', 'speed', 'time in waits'], run.ranks.map((r) => [
      r.rank, ...(run.elastic ? [r.worker] : []), r.host, state(r.state), r.steps || '', r.operations || '', speedOf(r), share(r)]));
    events.replaceChildren();
    if (run.events.length) simpleTable(events, ['when', 'what'], run.events.reverse().map((e) => [when(e.time), e.text]));
    else empty(events, run.elastic ? 'The group has not changed yet.' : 'Nothing but that it was started.');
  }
  return { refresh, concerns: (change) => change.runs !== undefined };
}
