// The page of one trial: configuration, curves, what was decided about it, checkpoints, output.
'use strict';

function drawTrialCurve(box, t, name) {
  const points = (t.curves[name] || []).filter((p) => p[1] !== null);
  if (!points.length) return;
  const figure = html('div', box);
  const w = widthOf(figure, 640), s = svg(figure, w, 220);
  const [X, Y, marks] = axes(s, { w, h: 220 }, linear('iteration', [1, Math.max(2, range(points.map((p) => p[0]))[1])], w / 80, true), linear(name, range(points.map((p) => p[1])), 6));
  for (const piece of pieces(points)) {
    el('polyline', { points: piece.map(([x, v]) => X(x) + ',' + Y(v)).join(' '), fill: 'none', stroke: color(t), 'stroke-width': 2 }, marks);
    if (piece.length === 1) el('circle', { cx: X(piece[0][0]), cy: Y(piece[0][1]), r: 3, fill: color(t) }, marks);
  }
}

function* drawTrialCurves(box, t, metrics) {
  if (!metrics.some((m) => (t.curves[m] || []).some((p) => p[1] !== null))) return empty(box, 'No reports yet.');
  const grid = html('div', box, undefined, 'small');
  for (const m of metrics) {
    drawTrialCurve(grid, t, m);
    yield;
  }
}

function trialPage(name, number) {
  const tools = html('div', html('section', id('content'), undefined, 'wide'), undefined, 'tools');
  link(tools, 'All trials of ' + name, studyLink(name));
  const stop = button(tools, 'Stop this trial', async () => {
    if (await ask(`Stop trial ${number} of ${name}? It cannot be continued.`, 'Stop it')) act('stop', { study: name, trial: number });
  }, 'grave');
  stop.id = 'stop';
  const config = part('Configuration', { name: 'configuration' });
  const results = part('Results', { name: 'results' });
  const curves = part('Curves', { wide: true, name: 'trial-curves' });
  const suggested = part('Why it was suggested', { name: 'suggested' });
  const decisions = part('What was decided about it', { name: 'decisions' });
  const checkpoints = part('Checkpoints', { name: 'checkpoints' });
  const logs = part('Output', { wide: true, name: 'logs' });

  async function refresh() {
    const t = await get('trial', { name, trial: number });
    useStudy({ ...t.study, trials: [t], importance: [] }, metric);
    pageHead(`${name}: trial ${number}`, [
      `${t.status}${t.stopped ? ', stopped early' : ''}; ${t.iterations} iterations in ${fmt(Math.round(t.seconds * 1000) / 1000)} s${t.failures ? `; failed ${t.failures} times` : ''}`,
      ...(t.why ? [t.why] : []), t.directory]);
    stop.hidden = about.read_only || ['TERMINATED', 'ERROR'].includes(t.status);
    config.replaceChildren();
    simpleTable(config, ['parameter', 'value'], Object.entries(t.config));
    results.replaceChildren();
    if (t.error) html('pre', results, t.error, 'error');
    const values = Object.entries(t.metrics);
    if (values.length) simpleTable(results, ['metric', 'last value'], values); else empty(results, 'Nothing was reported yet.');
    await inSlices(over(curves, drawTrialCurves, t, S.metrics));
    suggested.replaceChildren();
    const s = t.suggested;
    html('p', suggested, `The search ${s.search} suggested it${s.summary ? ': ' + s.summary : ''}.`);
    html('p', suggested, s.known ? `It knew the results of ${s.known} ${s.known === 1 ? 'trial' : 'trials'} that had ended before.` : 'No trial had ended before, so there was nothing to learn from.');
    decisions.replaceChildren();
    const lines = [...t.decisions.map((d) => [d.time, `iteration ${d.iteration}: ${d.reason}`]), ...t.events.map((e) => [e.time, e.kind + (e.detail ? ': ' + e.detail : '')])]
      .sort((a, b) => a[0] - b[0]).map(([time, text]) => [when(time), text]);
    if (t.why) lines.push(['at its end', t.why]);
    if (lines.length) simpleTable(decisions, ['when', 'what'], lines); else empty(decisions, 'It ran, and nothing was decided about it.');
    checkpoints.replaceChildren();
    if (t.checkpoints.length) simpleTable(checkpoints, ['iteration', 'path'], t.checkpoints.map((c) => [c.iteration, c.path])); else empty(checkpoints, 'There is none.');
  }
  return { refresh, close: followLogs(logs, { name, trial: number }), concerns: (change) => change.study === name };
}
