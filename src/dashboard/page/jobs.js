// Jobs: how many are in which state, who runs them, and why one does not run.
'use strict';

function jobsPage() {
  const states = part('States', { name: 'states' });
  const launchers = part('Launchers', { name: 'launchers' });
  const list = part('Jobs', { wide: true, name: 'jobs' });
  let chosen = '';
  async function refresh() {
    pageHead('Jobs', []);
    if (!about.jobs) {
      for (const box of [states, launchers, list]) box.parentElement.hidden = box !== list;
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
    if (data.launchers.length) simpleTable(launchers, ['launcher', 'host', 'process', 'since'], data.launchers.map((l) => [l.id, l.host, l.pid, when(l.started)]));
    else empty(launchers, 'No launcher is at work. `kolo launcher` starts one.');
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
    output.replaceChildren();
    if (j.output) html('pre', output, j.output, 'log').tabIndex = 0; else empty(output, 'It has printed nothing.');
  }
  return { refresh, concerns: (change) => change.jobs !== undefined };
}
