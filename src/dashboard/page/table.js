// The trials of a study in a table that the server filters, sorts and cuts into pages.
'use strict';
const kRows = 100;

/// Where a condition is typed. What the server cannot read is told below it and changes nothing else.
function filterField(parent, below, study, view, changed) {
  const input = html('input', parent, undefined, '', { type: 'text', id: 'filter', 'aria-label': 'Filter of trials',
    placeholder: 'filter, as in  loss < 0.3 and kind == sgd' });
  const note = html('div', below, undefined, 'error', { id: 'unreadable', role: 'status' });
  async function take() {
    const filter = input.value.trim();
    const problem = await get('trials', { name: study, filter, limit: 1 }).then(() => '', (error) => error.message);
    if (filter !== input.value.trim()) return;
    note.textContent = problem;
    if (problem || filter === view.filter) return;
    Object.assign(view, { filter, offset: 0 });
    changed();
  }
  let typing = 0;
  input.oninput = () => { clearTimeout(typing); typing = setTimeout(take, 250); };
}

/// `view` keeps what was chosen: {filter, sort, desc, offset, picked}.
function trialsTable(parent, study, view) {
  const tools = html('div', parent, undefined, 'tools');
  const compare = button(tools, 'Compare', () => { location.hash = `${studyLink(study)}/compare/${[...view.picked].join(',')}`; });
  compare.id = 'compare';
  const note = html('div', parent, undefined, 'facts');
  note.setAttribute('role', 'status');
  const box = scrolling(parent, 'Trials');
  const pager = html('div', parent, undefined, 'tools');

  const write = (e, text) => { if (e.textContent !== text) e.textContent = text; };
  const enable = (e, on) => { if (e.disabled === on) e.disabled = !on; };
  const picks = () => { enable(compare, view.picked.size > 1); write(compare, `Compare ${view.picked.size || ''}`); };
  function heading(row, name) {
    const sorted = view.sort === name;
    const th = html('th', row, undefined, '', { scope: 'col', 'aria-sort': !sorted ? 'none' : view.desc ? 'descending' : 'ascending' });
    button(th, name.replace(/^config\//, '') + (sorted ? (view.desc ? ' ▾' : ' ▴') : ''), () => {
      view.desc = sorted && !view.desc;
      view.sort = name;
      view.offset = 0;
      draw();
    });
  }
  function* drawRows(box, data) {
    const hidden = ['logdir', 'done', 'trial_name', 'experiment_tag', 'timestamp', 'trial_id'];
    const shown = data.columns.map((c, i) => [c, i]).filter(([c]) => !hidden.includes(c));
    const table = html('table', box, undefined, '', { id: 'table', 'data-rows': data.matching });
    const head = html('tr', html('thead', table));
    html('th', head, 'pick', 'plain', { scope: 'col' });
    for (const [c] of shown) heading(head, c);
    const body = html('tbody', table);
    // The widths of columns depend on all rows: a table that grows would be laid out again with each slice.
    if (!body.firstChild) table.hidden = true;
    for (const row of data.rows) {
      const tr = html('tr', body), n = row[0];
      const check = html('input', html('td', tr), undefined, '', { type: 'checkbox', 'aria-label': `Compare trial ${n}` });
      check.checked = view.picked.has(n);
      check.onclick = (event) => { event.stopPropagation(); if (check.checked) view.picked.add(n); else view.picked.delete(n); picks(); };
      for (const [c, i] of shown) {
        if (c === 'trial') link(html('td', tr), String(n), trialLink(study, n));
        else if (c === 'status') state(row[i])(html('td', tr));
        else html('td', tr, fmt(row[i]).slice(0, 120));
      }
      tr.onclick = (event) => { if (event.target.tagName !== 'INPUT') location.hash = trialLink(study, n); };
      yield;
    }
    if (table.hidden) table.hidden = false;
  }
  function* drawPager(box, data) {
    if (data.matching <= kRows) return;
    const move = (by) => () => { view.offset = Math.max(0, view.offset + by); draw(); };
    enable(button(box, 'Previous', move(-kRows)), view.offset > 0);
    html('span', box, `${data.offset + 1}–${data.offset + data.rows.length}`, 'facts');
    enable(button(box, 'Next', move(kRows)), data.offset + data.rows.length < data.matching);
  }
  const tell = (text, className) => { write(note, text); if (note.className !== className) note.className = className; };
  let asked = 0;
  async function draw() {
    const question = ++asked, newest = () => question === asked;
    let data;
    try {
      data = await get('trials', { name: study, filter: view.filter, sort: view.sort, desc: view.desc ? 1 : 0, offset: view.offset, limit: kRows });
    } catch (error) {
      if (newest()) tell(error.message, 'error');
      return;
    }
    if (!newest()) return;
    tell(`${data.matching} trials${view.filter ? ' for which the filter holds' : ''}`, 'facts');
    await inSlices(over(box, drawRows, data), newest);
    if (!newest()) return;
    await inSlices(over(pager, drawPager, data));
    picks();
  }
  return { draw, stale: false };
}
