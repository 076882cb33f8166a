// Which page is shown, and when it is drawn again.
'use strict';
let about = { read_only: true, jobs: false };
let page = null, refresh = () => {};

function complain(error) {
  let box = id('complaint');
  if (!box) {
    box = document.createElement('section');
    box.id = 'complaint';
    box.className = 'wide error';
    box.setAttribute('role', 'alert');
    id('content').prepend(box);
  }
  box.textContent = error.message || String(error);
}
/// An action, and what became of it.
async function act(path, body) {
  try { await post(path, body); refresh(); } catch (error) { complain(error); }
}

function pageFor(hash) {
  const words = hash.replace(/^#\/?/, '').split('/').map(decodeURIComponent);
  if (words[0] === 'jobs') return words[1] ? jobPage(Number(words[1])) : jobsPage();
  if (words[0] === 'runs') return words[1] ? runPage(words[1]) : runsPage();
  if (words[0] === 'cluster') return clusterPage();
  if (words[0] !== 'study') return studiesPage();
  if (words[2] === 'trial') return trialPage(words[1], Number(words[3]));
  if (words[2] === 'compare') return comparePage(words[1], words[3].split(',').map(Number));
  return studyPage(words[1]);
}

function show() {
  if (location.hash === '#content') return;
  if (page && page.close) page.close();
  id('content').replaceChildren();
  document.body.dataset.ready = '';
  pageHead('kolo', ['Loading']);
  const shown = page = pageFor(location.hash);
  refresh = throttled(async () => {
    if (page !== shown) return;
    try {
      await shown.refresh();
      if (page === shown && id('complaint')) id('complaint').remove();
    } catch (error) {
      if (page === shown) complain(error);
    }
    if (page !== shown) return;
    performance.mark('ready');
    document.body.dataset.ready = 'yes';
  });
  refresh();
}

async function begin() {
  // The cookie is here by now; the token is not to stay in the address, its history and bookmarks.
  if (location.search) history.replaceState(null, '', location.pathname + location.hash);
  try { about = await get('about'); } catch (error) { complain(error); }
  window.addEventListener('hashchange', () => { show(); id('content').focus(); });
  let drawn = 0;
  window.addEventListener('resize', () => { clearTimeout(drawn); drawn = setTimeout(() => refresh(), 300); });
  show();
  let first = true;
  listen((change) => {
    if (change === null && first) first = false;
    else if (change === null || page.concerns(change)) {
      if (page.glance) page.glance();
      refresh();
    }
  });
}
begin();
