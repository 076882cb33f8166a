// Elements of a page, drawn over those that it has. A page has one thread for its scripts, its layout and what comes from the
// server, so a drawing changes only what differs from the last one, and a long one lets others in between its slices.
'use strict';
const NS = 'http://www.w3.org/2000/svg';

/// Draws into `box` by the steps of a generator: what was drawn there before and is the same stays, what is too much goes at the end.
function* over(box, draw, ...rest) {
  const pen = (box.drawn ??= {}).pen ??= { turn: 0, parents: [] };
  ++pen.turn;
  pen.parents = [box];
  Object.assign(box.drawn, { turn: pen.turn, next: box.firstChild });
  yield* draw(box, ...rest);
  for (const parent of pen.parents)
    for (let e = parent.drawn.next; e; e = parent.drawn.next) {
      parent.drawn.next = e.nextSibling;
      e.remove();
    }
}
/// So far ahead is the one looked for that has a key; one that has moved further is made anew.
const kAhead = 8;
/// The next child of `parent`: the one that is there if it is of the same kind, else a new one. With a key, it is the one that had
/// this key: when one of many goes or comes, the others stay.
function place(make, name, attributes, parent, text, key) {
  const at = parent.drawn, pen = at && at.pen;
  if (pen && at.turn !== pen.turn) {
    Object.assign(at, { turn: pen.turn, next: parent.firstChild });
    pen.parents.push(parent);
  }
  const fits = (e, d) => d && d.pen === pen && d.key === key && e.localName === name && d.attributes.class === attributes.class
    && (d.text === undefined) === (text === undefined);
  let e = pen ? at.next : null;
  if (key !== undefined) for (let i = 0; i < kAhead && e && !fits(e, e.drawn); ++i) e = e.nextSibling;
  if (e && fits(e, e.drawn)) {
    for (let gone = at.next; gone !== e; gone = at.next) {
      at.next = gone.nextSibling;
      gone.remove();
    }
    at.next = e.nextSibling;
  } else {
    e = make(name);
    e.drawn = { pen, key, turn: -1, next: null, attributes: {}, text: undefined, trial: undefined };
  }
  const d = e.drawn;
  for (const k in attributes) if (attributes[k] !== d.attributes[k]) e.setAttribute(k, attributes[k]);
  for (const k in d.attributes) if (!(k in attributes)) e.removeAttribute(k);
  d.attributes = attributes;
  if (text !== d.text) e.textContent = d.text = text;
  // A new one comes into the document when it is ready: there each change of it would count.
  if (e.parentNode !== parent) parent.insertBefore(e, pen ? at.next : null);
  return e;
}
/// Those of the children whose keys are no longer among these go; the others are then in a row.
function keep(parent, keys) {
  const wanted = new Set(keys);
  for (const e of [...parent.children]) if (e.drawn.key !== undefined && !wanted.has(e.drawn.key)) e.remove();
}
const el = (name, attributes, parent, text, key) => place((tag) => document.createElementNS(NS, tag), name, attributes, parent, text, key);
const html = (name, parent, text, className, attributes) =>
  place((tag) => document.createElement(tag), name, className ? { class: className, ...attributes } : attributes || {}, parent, text);

const slices = { ms: 8, pauses: 0 };
/// Lets everybody else in first: answers of the server, keys, and the frames of what was drawn.
const pause = () => new Promise((resolve) => {
  ++slices.pauses;
  if (window.scheduler && scheduler.postTask) scheduler.postTask(resolve, { priority: 'background' }); else setTimeout(resolve, 0);
});
/// Takes all steps of a drawing, a few milliseconds at a time; ends early when `wanted()` no longer holds.
async function inSlices(steps, wanted = () => true) {
  for (let end = performance.now() + slices.ms; !steps.next().done;) {
    if (performance.now() < end) continue;
    await pause();
    if (!wanted()) return void steps.return();
    end = performance.now() + slices.ms;
  }
}
