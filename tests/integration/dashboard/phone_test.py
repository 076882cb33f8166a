#!/usr/bin/env python3
"""The page of a study that `kolo report-html` writes, on the screen of a phone: nothing is wider than that.

    phone_test.py KOLO [FILE.png]      with a file: keeps a picture of the page there
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser as chromium
from served import need_browser, use_folder

PHONE = 390  # points, as phones of 2020 to 2025 have them

# Names, values and words that are as long as people have them, and none of which may be broken at a blank.
LONG = "a_very_long_name_of_a_parameter_that_somebody_gave_it_in_a_hurry"
SPACE = f"""
{LONG}: {{uniform: [0, 1]}}
optimizer: {{choice: [{'stochastic_gradient_descent' * 3}, adam]}}
batch: {{choice: [16, 32, 64, 128]}}
layers: {{randint: [1, 9]}}
"""

# What is wider than its place must scroll there, not the page. A drawing ends where it ends, whatever is in it.
WIDER = """
[...document.querySelectorAll('body *')].filter((one) => {
  if (one.getBoundingClientRect().right <= innerWidth + 1 || one.ownerSVGElement) return false;
  for (let up = one.parentElement; up; up = up.parentElement)
    if (getComputedStyle(up).overflowX === 'auto') return false;
  return true;
}).map((one) => one.tagName + '.' + one.className + ' ' + one.textContent.slice(0, 60))
"""


def make_study(kolo, folder):
    (folder / "space.yaml").write_text(SPACE)
    program = f"kolo report loss=1; [ $KOLO_PARAM_BATCH != 16 ] || {{ echo {'no-memory-' * 30} >&2; exit 3; }}; kolo report loss=$KOLO_PARAM_LAYERS"
    subprocess.run([kolo, "tune", "--space", folder / "space.yaml", "--metric", "loss", "--mode", "min", "--num-samples", "12", "--quiet",
                    "--name", "phone-" + "x" * 60, "--", "sh", "-c", program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    page = folder / "report.html"
    subprocess.run([kolo, "report-html", "phone-" + "x" * 60, "-o", page], check=True, stdout=subprocess.DEVNULL)
    return page


def check(page, what):
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= PHONE, f"{what} is {wide} wide on a screen of {PHONE}: {page.evaluate(WIDER)}"
    # A page without the tag for phones is laid out as for a desk and made small.
    assert page.evaluate("innerWidth") == PHONE, page.evaluate("innerWidth")
    assert not page.evaluate(WIDER), f"{what}: cut off: {page.evaluate(WIDER)}"


def main():
    kolo = os.path.abspath(sys.argv[1])
    need_browser()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        use_folder(kolo, folder)
        report = make_study(kolo, folder)
        page = chromium.Browser(folder / "browser")
        try:
            page.look_like(width=PHONE, height=844)
            page.open(f"file://{report}")
            check(page, "the page")
            page.evaluate("document.querySelector('#table tbody tr').click()")
            page.wait_for("!document.getElementById('detail').hidden")
            check(page, "the page with a trial")
            if len(sys.argv) > 2:
                page.picture(sys.argv[2])
            assert not page.complaints, page.complaints
        finally:
            page.close()


main()
