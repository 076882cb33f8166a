// Small parts of pages. Texts go in as text, never as markup: names and logs come from programs.
'use strict';

function button(parent, text, action, className) {
  const e = html('button', parent, text, className, { type: 'button' });
  e.onclick = action;
  return e;
}
function link(parent, text, href) {
  return html('a', parent, text, '', { href });
}
/// A part of the page with a heading; returns the element for its content.
function part(title, { wide = false, name = '' } = {}) {
  const section = html('section', id('content'), undefined, wide ? 'wide' : '');
  html('h2', section, title);
  const body = html('div', section);
  if (name) body.id = name;
  return body;
}
function pageHead(title, facts) {
  document.title = title + ' · kolo';
  if (id('title').textContent !== title) id('title').textContent = title;
  for (const _ of over(id('facts'), function* (box) { for (const fact of facts) html('div', box, fact); }));
}
/// Rows of texts, or of functions that fill a cell.
function simpleTable(parent, columns, rows) {
  const table = html('table', scrolling(parent));
  const head = table.createTHead().insertRow();
  for (const c of columns) html('th', head, c, 'plain').scope = 'col';
  const body = table.createTBody();
  body.className = 'plain';
  for (const row of rows) {
    const tr = body.insertRow();
    for (const cell of row) {
      const td = tr.insertCell();
      if (typeof cell === 'function') cell(td); else td.textContent = fmt(cell);
    }
  }
  return table;
}
const when = (seconds) => new Date(seconds * 1000).toLocaleString();
const state = (text) => (parent) => html('span', parent, text, 'state ' + text);
const studyLink = (name) => '#/study/' + encodeURIComponent(name);
const trialLink = (name, n) => `${studyLink(name)}/trial/${n}`;

/// Asks before something that cannot be taken back. With a number, asks for one, too, and gives that.
function ask(question, yes, number) {
  const dialog = id('dialog');
  dialog.replaceChildren();
  html('p', dialog, question).id = 'question';
  const input = number === undefined ? null : html('input', dialog);
  if (input) {
    input.type = 'number';
    input.min = 1;
    input.value = number;
    input.id = 'number';
    input.setAttribute('aria-labelledby', 'question');
  }
  const tools = html('div', dialog, undefined, 'tools');
  return new Promise((resolve) => {
    const end = (answer) => { dialog.close(); resolve(answer); };
    button(tools, yes, () => { if (!input || input.reportValidity()) end(input ? Number(input.value) : true); }, 'grave').id = 'yes';
    button(tools, 'Cancel', () => end(false)).autofocus = true;
    dialog.oncancel = () => resolve(false);
    dialog.showModal();
  });
}
