// Clusters of `kolo up`: hosts, what they have, and who uses what.
'use strict';

const gigabytes = (bytes) => `${fmt(Math.round(bytes / 1e8) / 10)} GB`;
const amountsText = (a) => Object.entries(a).filter(([, v]) => v).map(([k, v]) => (k === 'memory' ? gigabytes(v) : `${v} ${k}`)).join(', ');

function clusterPage() {
  const box = html('div', id('content'));
  box.className = 'clusters wide';
  const bar = (td, used, all, text, label) => {
    const e = html('progress', td);
    e.max = all || 1;
    e.value = used;
    e.setAttribute('aria-label', label);
    td.append(' ' + text);
  };
  function drainButton(td, cluster, host) {
    if (about.read_only || host.state === 'lost') return;
    const undo = host.state === 'drained';
    button(td, undo ? 'Let it take work' : 'Drain', async () => {
      const question = undo ? `Let ${host.host} of ${cluster} take work again?` : `Drain ${host.host} of ${cluster}? What runs there goes on; nothing new begins.`;
      if (await ask(question, undo ? 'Let it' : 'Drain it')) act('drain', { cluster, host: host.host, undo });
    }, undo ? '' : 'grave').setAttribute('aria-label', `${undo ? 'Undrain' : 'Drain'} ${host.host}`);
  }
  async function refresh() {
    const { clusters } = await get('cluster');
    pageHead('Clusters', [`${clusters.length} ${clusters.length === 1 ? 'cluster' : 'clusters'}`]);
    box.replaceChildren();
    if (!clusters.length) return empty(html('section', box), 'There is no cluster. `kolo up FILE` makes one.');
    for (const { cluster, hosts } of clusters) {
      const section = html('section', box);
      html('h2', section, `${cluster}: ${hosts.length} ${hosts.length === 1 ? 'host' : 'hosts'}`);
      simpleTable(section, ['host', 'state', 'slots in use', 'load', 'memory in use', 'used by', ''], hosts.map((h) => [
        h.host + (h.head ? ' (head)' : ''), state(h.state),
        (td) => { if (h.state !== 'lost') bar(td, h.total.slots - h.free.slots, h.total.slots, `${h.total.slots - h.free.slots} of ${h.total.slots}`, `Slots in use on ${h.host}`); },
        h.load === undefined ? '' : `${h.load.toFixed(2)} on ${h.processors} cores`,
        (td) => { if (h.memory_bytes) bar(td, h.memory_bytes - h.available_bytes, h.memory_bytes, `${gigabytes(h.memory_bytes - h.available_bytes)} of ${gigabytes(h.memory_bytes)}`, `Memory in use on ${h.host}`); },
        (td) => { if (h.error) html('span', td, h.error, 'error'); for (const held of h.held) html('div', td, `${held.owner}: ${amountsText(held.amounts)}`); },
        (td) => drainButton(td, cluster, h)]));
    }
  }
  return { refresh, concerns: (change) => change.cluster !== undefined };
}
