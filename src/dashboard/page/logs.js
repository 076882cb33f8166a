// The output of a trial or a job, as it is written.
'use strict';
const kKept = 200000;  // letters of each file

/// Follows the files that belong to `parameters` ({name, trial} or {job}); returns how to end that.
function followLogs(box, parameters) {
  const files = new Map();
  empty(box, 'It has printed nothing.').id = 'silent';
  const shownFile = (name) => {
    if (!files.has(name)) {
      if (id('silent')) id('silent').remove();
      html('h3', box, name);
      const pre = html('pre', box, '', 'log');
      pre.tabIndex = 0;
      pre.setAttribute('role', 'region');
      pre.setAttribute('aria-label', name);
      files.set(name, pre);
    }
    return files.get(name);
  };
  let source = null;
  // A browser has few connections to one server, so a hidden tab holds none.
  const follow = () => {
    if (source) source.close();
    source = document.hidden ? null : new EventSource('/api/follow?' + new URLSearchParams(parameters));
    if (!source) return;
    source.addEventListener('hello', () => { for (const pre of files.values()) pre.textContent = ''; });
    source.onmessage = (event) => {
      const { file, text, again } = JSON.parse(event.data), pre = shownFile(file);
      const atEnd = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 4;
      pre.textContent = ((again ? '' : pre.textContent) + text).slice(-kKept);
      if (atEnd) pre.scrollTop = pre.scrollHeight;
    };
  };
  document.addEventListener('visibilitychange', follow);
  follow();
  return () => {
    document.removeEventListener('visibilitychange', follow);
    if (source) source.close();
  };
}
