// The first page: all studies.
'use strict';

function studiesPage() {
  const box = part('Studies', { wide: true, name: 'studies' });
  async function refresh() {
    const data = await get('studies');
    const at = (name) => data.columns.indexOf(name);
    const running = data.rows.filter((r) => r[at('state')] === 'running').length;
    pageHead('Studies', [`${data.rows.length} ${data.rows.length === 1 ? 'study' : 'studies'}, ${running} running`]);
    box.replaceChildren();
    if (!data.rows.length) return empty(box, 'There is no study in this database yet. `kolo tune` makes one.');
    const rows = data.rows.map((row, i) => [
      (td) => link(td, row[at('name')], studyLink(row[at('name')])),
      state(row[at('state')]),
      (td) => {
        const all = Math.max(data.planned[i], row[at('trials')]);
        const bar = html('progress', td);
        bar.max = all || 1;
        bar.value = row[at('done')];
        bar.setAttribute('aria-label', `Trials that have ended in ${row[at('name')]}`);
        td.append(` ${row[at('done')]} of ${all}`);
      },
      row[at('failed')], row[at('metric')], row[at('best')], row[at('elapsed_s')], row[at('created')]]);
    simpleTable(box, ['study', 'state', 'trials ended', 'failed', 'metric', 'best', 'seconds', 'begun'], rows.reverse());
  }
  return { refresh, concerns: (change) => change.study !== undefined };
}
