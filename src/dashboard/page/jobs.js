// Jobs: how many are in which state, who runs them, and why one does not run.
'use strict';

const jobColor = (states) => (states.FAILED || states.USER_KILLED ? 'var(--red)' : states.RUNNING ? 'var(--green)'
  : Object.keys(states).every((s) => s === 'JOB_FINISHED') ? 'var(--blue)' : 'var(--soft)');

/// How far each node is from those that wait for nobody; applications may wait for each other in a circle.
function layersOf(nodes, edges) {
  const layer = nodes.map(() => 0);
  for (let pass = 0, moved = true; moved && pass < nodes.length; ++pass) {
    moved = false;
    for (const [from, to] of edges) if (layer[to] <= layer[from] && layer[from] + 1 < nodes.length) { layer[to] = layer[from] + 1; moved = true; }
  }
  return layer;
}

/// Jobs from left to right: each stands to the right of those it waits for.
function drawGraph(box, graph) {
  const layer = layersOf(graph.nodes, graph.edges), rows = [], place = graph.nodes.map((n, i) => (rows[layer[i]] = (rows[layer[i]] || 0) + 1) - 1);
  const w = rows.length * 190 + 10, h = Math.max(...rows) * 44 + 10, X = (i) => 10 + layer[i] * 190, Y = (i) => 8 + place[i] * 44;
  const scroll = scrolling(box, 'Graph of the workflow'), s = el('svg', { viewBox: `0 0 ${w} ${h}`, width: w, height: h, class: 'graph' }, scroll);
  for (const [from, to] of graph.edges) {
    const [x, y, u, v] = [X(from) + 150, Y(from) + 16, X(to), Y(to) + 16];
    el('path', { d: `M${x} ${y}C${x + 25} ${y} ${u - 25} ${v} ${u} ${v}`, fill: 'none', stroke: 'var(--soft)' }, s);
  }
  graph.nodes.forEach((n, i) => {
    const text = Object.entries(n.states).map(([k, v]) => (graph.grouped ? `${v} ${k}` : k)).join(', ');
    const parent = n.id ? el('a', { href: '#/jobs/' + n.id, 'aria-label': `job ${n.id}, ${n.label}: ${text}` }, s) : el('g', {}, s);
    el('rect', { x: X(i), y: Y(i), width: 150, height: 34, rx: 5, fill: 'var(--paper)', stroke: jobColor(n.states), 'stroke-width': 2 }, parent);
    el('text', { x: X(i) + 8, y: Y(i) + 14, class: 'name' }, parent, n.label.length > 22 ? n.label.slice(0, 21) + '…' : n.label);
    el('text', { x: X(i) + 8, y: Y(i) + 28 }, parent, text.length > 24 ? text.slice(0, 23) + '…' : text);
    el('title', {}, parent, `${n.label}: ${text}`);
  });
  legend(box, [['var(--blue)', 'finished'], ['var(--green)', 'running'], ['var(--red)', 'failed or killed'], ['var(--soft)', 'waiting']]);
  if (graph.grouped) html('div', box, 'There are many jobs, so each application is drawn once.', 'facts');
}

function jobsPage() {
  const states = part('States', { name: 'states' });
  const launchers = part('Launchers', { name: 'launchers' });
  const graphBox = part('Workflow', { wide: true, name: 'workflow' });
  const label = html('label', html('div', graphBox, undefined, 'tools'), 'Workflow ');
  const choice = html('select', label);
  const graph = html('div', graphBox);
  graph.id = 'graph';
  choice.onchange = () => refresh();
  const list = part('Jobs', { wide: true, name: 'jobs' });
  let chosen = '';
  async function refresh() {
    pageHead('Jobs', []);
    if (!about.jobs) {
      for (const box of [states, launchers, graphBox, list]) box.parentElement.hidden = box !== list;
      list.replaceChildren();
      return empty(list, 'No database of jobs is shown. Start the dashboard with --jobs DIR.');
    }
    const data = await get('jobs', { state: chosen });
    pageHead('Jobs', [data.folder]);
    states.replaceChildren();
    const choose = (name) => (td) => button(td, name || 'all states', () => { chosen = name; refresh(); });
    simpleTable(states, ['workflow', 'state', 'jobs'], data.counts.map((c) => [c.workflow, choose(c.state), c.jobs]));
    if (chosen) choose('')(html('p', states));
    launchers.replaceChildren();
    if (data.launchers.length) simpleTable(launchers, ['launcher', 'host', 'process', 'nodes', 'cores', 'mode', 'workflow', 'since'], data.launchers.map((l) => {
      const a = l.about || {};
      return [l.id, l.host, l.pid, a.nodes, a.cores, a.mode, a.workflow || 'all', when(l.started)];
    }));
    else empty(launchers, 'No launcher is at work. `kolo launcher` starts one.');
    const workflows = [...new Set(data.counts.map((c) => c.workflow))];
    if ([...choice.options].map((o) => o.value).join('\n') !== workflows.join('\n')) {
      const before = choice.value;
      choice.replaceChildren();
      for (const name of workflows) html('option', choice, name).selected = name === before;
    }
    graphBox.parentElement.hidden = !workflows.length;
    if (workflows.length) {
      const drawn = await get('graph', { workflow: choice.value });
      graph.replaceChildren();
      drawGraph(graph, drawn);
    }
    list.replaceChildren();
    if (!data.jobs.length) return empty(list, 'There are no such jobs.');
    html('div', list, `${data.matching} jobs${chosen ? ' in state ' + chosen : ''}; the newest come first`, 'facts');
    simpleTable(list, ['job', 'name', 'workflow', 'application', 'state', 'created'], data.jobs.map((j) => [
      (td) => link(td, String(j.id), '#/jobs/' + j.id), j.name, j.workflow, j.application, state(j.state), when(j.created)]));
  }
  return { refresh, concerns: (change) => change.jobs !== undefined };
}

function jobPage(number) {
  const tools = html('div', html('section', id('content'), undefined, 'wide'), undefined, 'tools');
  link(tools, 'All jobs', '#/jobs');
  const kill = button(tools, 'Kill this job', async () => {
    if (await ask(`Kill job ${number}? Jobs that wait for it fail.`, 'Kill it')) act('kill', { job: number });
  }, 'grave');
  kill.id = 'kill';
  const why = part('Why it is where it is', { name: 'explain' });
  const history = part('History', { name: 'history-of-job' });
  const fields = part('Fields', { name: 'fields' });
  const output = part('Output', { wide: true, name: 'logs' });
  async function refresh() {
    const j = await get('job', { id: number });
    pageHead(`Job ${number}: ${j.name}`, [j.state, j.folder]);
    kill.hidden = about.read_only || j.ended;
    why.replaceChildren();
    for (const line of j.explain) html('p', why, line);
    for (const [text, ids] of [['Waits for', j.parents], ['Awaited by', j.children]]) {
      if (!ids.length) continue;
      const p = html('p', why, text + ' ');
      for (const n of ids) { link(p, 'job ' + n, '#/jobs/' + n); p.append(' '); }
    }
    history.replaceChildren();
    simpleTable(history, ['when', 'state', 'reason'], j.history.map((h) => [when(h.time), state(h.state), h.reason]));
    fields.replaceChildren();
    simpleTable(fields, ['field', 'value'], Object.entries(j.fields).map(([k, v]) => [k, typeof v === 'object' ? JSON.stringify(v) : v]));
  }
  return { refresh, close: followLogs(output, { job: number }), concerns: (change) => change.jobs !== undefined };
}
