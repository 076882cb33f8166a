#!/usr/bin/env python3
"""The page that `kolo report-html` writes of 100,000 trials: at most 5 MB, and all of them in its table.

    large_report_test.py KOLO [FILE.png]      with a file: keeps a picture of the page there
"""
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser as chromium
from served import need_browser, use_folder

TRIALS = 100_000
MOST_BYTES = 5_000_000


def write_page(kolo, folder, name, numbers, names):
    """Of a study with so many parameters that are numbers, and so many that are names."""
    lot = random.Random(1)
    columns = [f"x{i}" for i in range(numbers)] + [f"kind{i}" for i in range(names)]
    rows = []
    with open(folder / f"{name}.csv", "w") as file:
        print(*columns, "objective", "elapsed_sec", "duration", sep=",", file=file)
        for n in range(TRIALS):
            values = [round(lot.uniform(0, 1), 9) for _ in range(numbers)]
            kinds = [lot.choice(["adam", "sgd", "</script>"]) for _ in range(names)]
            rows.append((sum(values), values, kinds))
            print(*values, *kinds, rows[-1][0], n / 10, lot.uniform(1, 2), sep=",", file=file)
    subprocess.run([kolo, "import", folder / f"{name}.csv", "--name", name], check=True, stdout=subprocess.DEVNULL)
    page = folder / f"{name}.html"
    subprocess.run([kolo, "report-html", name, "-o", page], check=True, stdout=subprocess.DEVNULL)
    size = page.stat().st_size
    assert size <= MOST_BYTES, f"the page of {name} has {size:,} bytes"
    print(f"{TRIALS:,} trials with {numbers + names} parameters: {size:,} bytes")
    return page, rows


def open_page(browser, page):
    browser.open(f"file://{page}")
    browser.wait_for("document.body.dataset.ready === 'yes'", 120)


def facts(browser):
    return browser.evaluate("document.getElementById('facts').textContent")


def filtered(browser, words):
    browser.evaluate(f"document.getElementById('filter').value = {words!r}; document.getElementById('filter').oninput()")
    return int(browser.evaluate("document.getElementById('table').dataset.rows"))


def check_all_are_there(browser, page, rows):
    open_page(browser, page)
    best = max(range(TRIALS), key=lambda n: rows[n][0])
    assert f"{TRIALS} trials: {TRIALS} TERMINATED" in facts(browser), facts(browser)
    assert "1000 in all, are drawn; the table has all of them" in facts(browser), facts(browser)
    assert f"trial {best}," in facts(browser), (best, facts(browser))
    assert filtered(browser, "") == TRIALS
    # What four bytes hold is compared, not what was written: none of these is so near to the limit.
    assert filtered(browser, "x0<0.25") == sum(values[0] < 0.25 for _, values, _ in rows)
    assert filtered(browser, "kind0==</script>") == sum(kinds[0] == "</script>" for _, _, kinds in rows)
    # A trial that is not drawn has its row, too, and what the row says is right.
    drawn = set(browser.evaluate("S.trials.map((t) => t.n)"))
    brief = next(n for n in range(TRIALS) if n not in drawn)
    assert filtered(browser, f"trial=={brief}") == 1
    browser.evaluate("document.querySelector('#table tbody tr').click()")
    detail = browser.evaluate("document.getElementById('detail').textContent")
    assert f"Trial {brief}" in detail and f"x0={float(f'{rows[brief][1][0]:.5g}'):g}" in detail, detail
    assert "kolo dashboard" in detail, detail


def main():
    kolo = os.path.abspath(sys.argv[1])
    need_browser()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        use_folder(kolo, folder)
        few, rows = write_page(kolo, folder, "few", 3, 1)
        many, _ = write_page(kolo, folder, "many", 20, 0)
        browser = chromium.Browser(folder / "browser")
        try:
            check_all_are_there(browser, few, rows)
            if len(sys.argv) > 2:
                browser.picture(sys.argv[2])
            # Twenty columns of numbers do not fit: the page says how many trials it has.
            open_page(browser, many)
            listed = filtered(browser, "")
            assert 10_000 < listed < TRIALS, listed
            assert f"the table has {listed} of the trials" in facts(browser), facts(browser)
            assert not browser.complaints, browser.complaints
        finally:
            browser.close()


main()
