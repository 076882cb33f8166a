#!/usr/bin/env python3
"""How a page draws a study of 1,000 running trials, in a real browser: in slices between which others get their turn, only
what has changed, only what is in view, and never an older state over a newer one. No result depends on how long anything takes.

    drawing_test.py KOLO
"""
import os
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from served import Served, need_browser, use_folder

TRIALS = 1000
# Answers in place of those of the server, so that what has changed is known.
STAND_IN = """
const made = { loss: (n) => 1 + (n * 37 % 1000) / 1000, seq: 1, every: 1, asked: [] };
const madeTrial = (n) => ({ n, id: 'id' + n, status: 'RUNNING', stopped: false, seconds: 1, iterations: 3, why: '', error: '',
  config: { lr: (n * 7 % 1000) / 1000, depth: n % 8, width: n * 13 % 1000, a: n % 5, b: n % 7, c: n % 11 }, metrics: { loss: made.loss(n) }, values: [made.loss(n)],
  runs: [[n, n + 1, String(n % 8)]] });
const madeSummary = (seq) => ({ name: 'made', objectives: [{ metric: 'loss', min: true }], metrics: ['loss'], program: '', created: 1, elapsed: 1,
  search: 'random', scheduler: 'fifo', directory: '/nonexistent', state: 'running', planned: 1000, seq, counts: { RUNNING: 1000 }, early: 0,
  total: 1000, read: 1000, parameters: ['lr', 'depth', 'width', 'a', 'b', 'c'].map((path) => ({ path, log: false })) });
const madeTrials = () => Array.from({ length: 1000 }, (_, n) => madeTrial(n)).filter((t) => t.n % made.every === 0);
const madeAnswers = {
  summary: () => ({ ...madeSummary(made.seq), best: { ...madeTrial(0), metrics: { loss: 0.5 / made.seq } } }),
  study: () => ({ ...madeAnswers.summary(), matching: 1000, trials: madeTrials() }),
  curves: () => Object.fromEntries(madeTrials().map((t) => [t.n, [[1, 3], [2, 2], [3, t.metrics.loss]]])),
  importance: () => [],
  trials: () => ({ columns: ['trial', 'status', 'loss'], rows: madeTrials().slice(0, 100).map((t) => [t.n, t.status, t.metrics.loss]),
    matching: 1000, offset: 0 }),
};
get = async (path) => { made.asked.push(path); return JSON.parse(JSON.stringify(madeAnswers[path]())); };
const records = [];
new MutationObserver((list) => records.push(...list)).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
const changedNow = async (work) => {
  await new Promise((resolve) => { setTimeout(resolve, 0); });
  records.length = 0;
  await work();
  await new Promise((resolve) => { setTimeout(resolve, 0); });
  return [...new Set(records.map((r) => r.target))].filter((e) => id('content').contains(e));
};
location.hash = '#/study/made';
"""


def equal(found, wanted, what):
    assert found == wanted, f"{what}: {found}, not {wanted}"


def check_slices(page):
    """With slices of no length, whatever waits gets its turn after every mark."""
    page.evaluate("""window.drawn = async (ms) => {
        Object.assign(slices, { ms, pauses: 0 });
        let passed = 0, before = true;
        const other = new MessageChannel();
        other.port1.onmessage = () => { passed = before ? 1 : 0; };
        other.port2.postMessage(0);
        await redraw();
        before = false;
        slices.ms = 8;
        return [slices.pauses, passed];
    }""")
    pauses, passed = page.evaluate("drawn(0)")
    marks = page.evaluate("document.querySelectorAll('#history .hit, #curves .hit').length")
    equal(page.evaluate("document.querySelectorAll('#history circle').length"), TRIALS, "points of the history")
    assert pauses >= marks > TRIALS, f"{marks} marks were drawn with {pauses} pauses"
    equal(passed, 1, "messages that got their turn in the middle of a drawing")
    equal(page.evaluate("drawn(1e9)"), [0, 0], "pauses, and messages between them, in a slice without an end")


def check_changes(page):
    equal(page.evaluate("changedNow(() => page.refresh()).then((all) => all.map((e) => e.outerHTML.slice(0, 100)))"), [],
          "elements that were touched though nothing was new")
    page.evaluate("made.loss = (n) => 1 + (n === 400 ? 0.5003 : (n * 37 % 1000) / 1000); ++made.seq; window.before = [...document.querySelectorAll('#history circle')]; 0")
    touched = page.evaluate("changedNow(() => page.refresh()).then((all) => all.map((e) => (e.drawn && e.drawn.trial ? e.drawn.trial.n : e.localName)))")
    assert 400 in touched, f"the trial that has changed was not drawn: {touched}"
    # In parallel coordinates the order of all lines is that of their values, and their colour, too, in twenty steps.
    others = {one for one in touched if isinstance(one, int) and one != 400}
    assert len(others) <= 20, f"of the other trials, {len(others)} were drawn again"
    assert page.evaluate("before.every((e, n) => e === document.querySelectorAll('#history circle')[n])"), "points were made anew"


def check_view(page):
    """What nobody sees is not drawn; it is when it comes into view."""
    equal(page.evaluate("id('timeline').childElementCount"), 0, "parts of a plot that is not in view")
    assert not page.evaluate("made.asked.includes('trials')"), "rows of a table that is not in view were asked for"
    page.evaluate("id('trials').scrollIntoView()")
    page.wait_for("document.querySelectorAll('#table tbody tr').length === 100")
    page.wait_for("document.querySelectorAll('#timeline rect').length === 1000")
    page.evaluate("document.querySelector('#table tbody a').focus()")
    page.evaluate("page.refresh()")
    equal(page.evaluate("document.activeElement.textContent"), "0", "the focus after a drawing")
    page.evaluate("window.scrollTo(0, 0)")


def check_order(page):
    """Words come from a small answer of their own; one that was overtaken does not count."""
    page.evaluate("made.seq = 10; page.glance()")
    page.wait_for("id('facts').textContent.includes('Best loss 0.05')")
    page.evaluate("made.seq = 9")
    page.evaluate("page.refresh()")
    assert page.evaluate("id('facts').textContent.includes('Best loss 0.05')"), page.evaluate("id('facts').textContent")


def check_sample(page):
    """Of a larger study, some trials are drawn; all of them are inside the plot."""
    page.evaluate("Object.assign(made, { every: 10, seq: 11 }); page.refresh()")
    inside = page.evaluate("""[...document.querySelectorAll('#history circle')]
        .filter((e) => e.cx.baseVal.value <= e.ownerSVGElement.viewBox.baseVal.width).length""")
    equal(inside, TRIALS // 10, "points inside the history")
    assert page.evaluate("document.querySelectorAll('#history circle')[50] === before[500]"), "a point that stays was made anew"
    page.evaluate("Object.assign(made, { every: 1, seq: 12 }); page.refresh()")


def check_text(page):
    """A mark has its text when it is pointed at, and leads to its trial."""
    page.evaluate("document.querySelectorAll('#history circle')[7].dispatchEvent(new PointerEvent('pointerover', { bubbles: true }))")
    text = page.evaluate("document.querySelectorAll('#history circle')[7].querySelector('title').textContent")
    assert text.startswith("trial 7: loss ") and "depth=7" in text, text
    equal(page.evaluate("document.querySelectorAll('#history title').length"), 1, "texts")
    page.evaluate("document.querySelectorAll('#history circle')[7].dispatchEvent(new MouseEvent('click', { bubbles: true }))")
    equal(page.evaluate("location.hash"), "#/study/made/trial/7", "the address after a click")


def main():
    need_browser()
    kolo = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        use_folder(kolo, folder)
        with Served(kolo, folder) as (page, address):
            page.open(address)
            page.evaluate(STAND_IN)
            page.wait_for("document.body.dataset.ready === 'yes' && document.querySelectorAll('#history circle').length === 1000")
            for check in (check_slices, check_changes, check_view, check_order, check_sample):
                check(page)
            assert not page.complaints, page.complaints
            check_text(page)  # it leaves for the page of a trial that the server does not have


if __name__ == "__main__":
    main()
