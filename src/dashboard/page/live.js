// Talks with the server: answers as JSON, actions, and the stream that says what has changed.
'use strict';

async function answerOf(response) {
  const json = await response.json().catch(() => ({ error: response.statusText }));
  if (!response.ok) throw new Error(json.error || response.statusText);
  return json;
}
async function get(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  return answerOf(await fetch('/api/' + path + (query ? '?' + query : '')));
}
async function post(path, body) {
  return answerOf(await fetch('/api/' + path, { method: 'POST', body: JSON.stringify(body),
    headers: { 'Content-Type': 'application/json' } }));
}

/// Calls `changed(change)` for each change, and `changed(null)` when everything may be new: at the
/// first connection, and when the server or this tab comes back. A hidden tab holds no connection.
function listen(changed) {
  let source = null;
  const show = (text, lost) => { id('live').textContent = text; id('live').className = 'facts' + (lost ? ' lost' : ''); };
  const open = () => {
    source = new EventSource('/api/events');
    source.addEventListener('hello', () => { show('live', false); changed(null); });
    source.onmessage = (event) => changed(JSON.parse(event.data));
    source.onerror = () => {
      show('not connected; trying again', true);
      if (source.readyState !== EventSource.CLOSED) return;
      source = null;  // refused, as while the server starts: the browser would not try again
      setTimeout(() => { if (!source && !document.hidden) open(); }, 1000);
    };
  };
  document.addEventListener('visibilitychange', () => {
    if (document.hidden && source) { source.close(); source = null; show('paused', false); }
    if (!document.hidden && !source) open();
  });
  open();
}

/// Runs `work` now, and while it runs or has just run, once more afterwards: the newest state is
/// always drawn, and a busy study leaves most of the time to the reader. The pause is between `least` and `most` milliseconds.
function throttled(work, least = 20, most = 1000) {
  let busy = false, again = false;
  return async function run() {
    if (busy) { again = true; return; }
    busy = true;
    const begin = performance.now();
    try { await work(); } finally {
      const pause = Math.min(Math.max(3 * (performance.now() - begin), least), most);
      setTimeout(() => { busy = false; if (again) { again = false; run(); } }, pause);
    }
  };
}
