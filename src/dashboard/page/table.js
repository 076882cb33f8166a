// The trials of a study in a table that the server filters, sorts and cuts into pages.
'use strict';
const kRows = 100;

/// `view` keeps what was chosen: {filter, sort, desc, offset, picked}.
function trialsTable(parent, study, view) {
  const tools = html('div', parent, undefined, 'tools');
  const input = html('input', tools);
  input.type = 'text';
  input.id = 'filter';
  input.placeholder = "filter, as in  loss < 0.3 and kind == sgd";
  input.setAttribute('aria-label', 'Filter of trials');
  input.value = view.filter;
  const compare = button(tools, 'Compare', () => { location.hash = `${studyLink(study)}/compare/${[...view.picked].join(',')}`; });
  compare.id = 'compare';
  const note = html('div', parent, undefined, 'facts');
  note.setAttribute('role', 'status');
  const box = scrolling(parent, 'Trials');
  const pager = html('div', parent, undefined, 'tools');

  const picks = () => { compare.disabled = view.picked.size < 2; compare.textContent = `Compare ${view.picked.size || ''}`; };
  function heading(row, name) {
    const th = html('th', row);
    th.scope = 'col';
    const sorted = view.sort === name;
    th.setAttribute('aria-sort', !sorted ? 'none' : view.desc ? 'descending' : 'ascending');
    button(th, name.replace(/^config\//, '') + (sorted ? (view.desc ? ' ▾' : ' ▴') : ''), () => {
      view.desc = sorted && !view.desc;
      view.sort = name;
      view.offset = 0;
      draw();
    });
  }
  async function draw() {
    let data;
    try {
      data = await get('trials', { name: study, filter: view.filter, sort: view.sort, desc: view.desc ? 1 : 0, offset: view.offset, limit: kRows });
    } catch (error) {
      note.textContent = error.message;
      note.className = 'error';
      return;
    }
    note.className = 'facts';
    note.textContent = `${data.matching} trials${view.filter ? ' for which the filter holds' : ''}`;
    const hidden = ['logdir', 'done', 'trial_name', 'experiment_tag', 'timestamp', 'trial_id'];
    const shown = data.columns.map((c, i) => [c, i]).filter(([c]) => !hidden.includes(c));
    const table = document.createElement('table');
    table.id = 'table';
    table.dataset.rows = data.matching;
    const head = table.createTHead().insertRow();
    html('th', head, 'pick', 'plain').scope = 'col';
    for (const [c] of shown) heading(head, c);
    const body = table.createTBody();
    for (const row of data.rows) {
      const tr = body.insertRow(), n = row[0];
      const check = html('input', tr.insertCell());
      check.type = 'checkbox';
      check.setAttribute('aria-label', `Compare trial ${n}`);
      check.checked = view.picked.has(n);
      check.onclick = (event) => { event.stopPropagation(); if (check.checked) view.picked.add(n); else view.picked.delete(n); picks(); };
      for (const [c, i] of shown) {
        const td = tr.insertCell();
        if (c === 'trial') link(td, String(n), trialLink(study, n));
        else if (c === 'status') state(row[i])(td);
        else td.textContent = fmt(row[i]).slice(0, 120);
      }
      tr.onclick = (event) => { if (event.target.tagName !== 'INPUT') location.hash = trialLink(study, n); };
    }
    box.replaceChildren(table);
    pager.replaceChildren();
    if (data.matching > kRows) {
      const move = (by) => () => { view.offset = Math.max(0, view.offset + by); draw(); };
      button(pager, 'Previous', move(-kRows)).disabled = view.offset === 0;
      html('span', pager, `${data.offset + 1}–${data.offset + data.rows.length}`, 'facts');
      button(pager, 'Next', move(kRows)).disabled = data.offset + data.rows.length >= data.matching;
    }
    picks();
  }
  let typing = 0;
  input.oninput = () => { clearTimeout(typing); typing = setTimeout(() => { view.filter = input.value.trim(); view.offset = 0; draw(); }, 250); };
  return { draw };
}
