// The head of the page, the table of trials, and all about one of them.
function drawFacts() {
  const best = bestTrial(), drawn = S.trials.length, listed = S.rows.length;
  const div = id('facts');
  div.replaceChildren();
  const begun = new Date(S.created * 1000).toISOString().replace('T', ' ').slice(0, 16) + ' UTC';
  html('div', div, `${S.program ? S.program + '; ' : ''}begun ${begun}, ran ${fmt(Math.round(S.elapsed * 10) / 10)} s; search ${S.search}, scheduler ${S.scheduler}`);
  html('div', div, `${S.total} ${S.total === 1 ? 'trial' : 'trials'}: ${Object.entries(S.counts).map(([k, v]) => v + ' ' + k).join(', ')}${S.early ? ', ' + S.early + ' stopped early' : ''}`);
  if (drawn < S.total) html('div', div, `The best and some others, ${drawn} in all, are drawn; the table has ${listed < S.total ? `${listed} of the trials` : 'all of them'}. kolo dashboard and kolo export ${S.name} have everything.`);
  if (best) html('div', div, `Best ${metric} ${fmt(val(best))}: trial ${best.n}, ${pairs(best.config)}`);
  html('div', div, S.directory);
}

function showTrial(t) {
  const box = id('detail');
  box.hidden = false;
  box.replaceChildren();
  html('h2', box, `Trial ${t.n}${t.id ? ` (${t.id})` : ''}`);
  html('div', box, `${t.status}${t.stopped ? ', stopped early' : ''}; ${t.iterations} ${t.iterations === 1 ? 'iteration' : 'iterations'} in ${fmt(Math.round(t.seconds * 1000) / 1000)} s${t.why ? '; ' + t.why : ''}`, 'facts');
  if (t.error) html('pre', box, t.error);
  html('pre', box, 'Parameters: ' + pairs(t.config));
  html('pre', box, 'Last report: ' + pairs(t.metrics));
  const links = html('div', box, undefined, 'facts');
  links.append(t.brief ? `More about this trial: kolo dashboard, or kolo trials ${S.name}` : 'Files: ');
  for (const [name, path] of t.files) {
    const a = html('a', links, name);
    a.href = 'file://' + path.split('/').map(encodeURIComponent).join('/');
    links.append(' ');
  }
  const points = curve(t);
  if (points.length > 1) {
    const w = widthOf(box, 640), s = svg(box, w, 220);
    s.style.maxWidth = '640px';
    const [X, Y, marks] = axes(s, { w, h: 220 }, linear('iteration', [1, Math.max(2, ...points.map((p) => p[0]))], w / 80, true), linear(metric, range(points.map((p) => p[1])), 6));
    for (const part of pieces(points))
      el('polyline', { points: part.map(([x, v]) => X(x) + ',' + Y(v)).join(' '), fill: 'none', stroke: color(t), 'stroke-width': 2 }, marks);
  }
  box.scrollIntoView({ block: 'nearest' });
}

const order = { by: 0, down: false };
function drawTable() {
  const keys = [...new Set(S.rows.flatMap((t) => Object.keys(t.config || {})))];
  const columns = ['trial', 'status', 'iterations', 'seconds', ...S.metrics, ...keys, 'why'];
  const cells = (t) => [t.n, t.status + (t.stopped ? ' (early)' : ''), t.iterations, Math.round(t.seconds * 1000) / 1000,
    ...S.metrics.map((m) => t.metrics[m]), ...keys.map((k) => (t.config || {})[k]), t.why || t.error.split('\n')[0]];
  const wanted = id('filter').value.trim().split(/\s+(?![<>=!])/).filter(Boolean);
  const fits = (row) => wanted.every((word) => {
    const m = word.match(/^(.+?)\s*(==|!=|<=|>=|<|>)\s*(.*)$/), i = m ? columns.indexOf(m[1].trim()) : -1;
    if (i < 0) return row.some((v) => fmt(v).toLowerCase().includes(word.toLowerCase()));
    const number = typeof row[i] === 'number', y = number ? row[i] : fmt(row[i]), x = number ? Number(m[3]) : m[3];
    return { '==': y == x, '!=': y != x, '<': y < x, '<=': y <= x, '>': y > x, '>=': y >= x }[m[2]];
  });
  const rows = S.rows.map((t) => ({ t, c: cells(t) })).filter((r) => fits(r.c)).sort((p, q) => {
    const x = p.c[order.by], y = q.c[order.by], n = x === null || x === undefined, m = y === null || y === undefined;
    return n || m ? n - m : (x < y ? -1 : x > y ? 1 : 0) * (order.down ? -1 : 1);
  });
  const table = id('table'), best = bestTrial();
  table.replaceChildren();
  const head = table.createTHead().insertRow();
  columns.forEach((c, i) => {
    const th = html('th', head, c + (i === order.by ? (order.down ? ' ▾' : ' ▴') : ''));
    th.onclick = () => { order.down = order.by === i ? !order.down : false; order.by = i; drawTable(); };
  });
  const body = table.createTBody();
  for (const r of rows.slice(0, 1000)) {
    const tr = body.insertRow();
    if (r.t === best) tr.className = 'best';
    tr.onclick = () => showTrial(r.t);
    for (const v of r.c) tr.insertCell().textContent = fmt(v);
  }
  table.dataset.rows = rows.length;
}

/// Draws one plot again, or everything: the words first, and the plots as fast as they can be drawn.
const turns = {};
async function redraw(only) {
  const best = bestTrial();
  if (!only) { drawFacts(); drawTable(); }
  for (const name in kPlots) {
    if (only && name !== only) continue;
    const turn = turns[name] = (turns[name] || 0) + 1;  // the newest drawing of a plot is the one that goes on
    await inSlices(over(id(name), kPlots[name], best), () => turn === turns[name]);
  }
}

useStudy(JSON.parse(id('data').textContent));
S.rows = S.table ? rowsOf(S.table, S.trials) : S.trials;
for (const m of S.metrics) html('option', id('metric'), m).selected = m === metric;
id('metric').onchange = () => { metric = id('metric').value; redraw(); };
id('filter').oninput = drawTable;
redraw().then(() => { document.body.dataset.ready = 'yes'; });
