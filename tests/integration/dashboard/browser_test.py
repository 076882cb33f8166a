#!/usr/bin/env python3
"""Opens every page of the dashboard in a real browser: what belongs there is there, texts of trials are not taken as
markup, the console stays empty, a change shows by itself, and actions work.

    browser_test.py KOLO [FOLDER]      with a folder: keeps pictures of the pages there, for docs/
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser as chromium
from served import Served, confirm, drawn, need_browser, says, use_folder

STUDY = "first <b>study"
PLACE = "/study/first%20%3Cb%3Estudy"
SPACE = """lr: {loguniform: [0.0001, 0.1]}
depth: {randint: [1, 8]}
kind: {choice: ["<img src=x onerror=alert(1)>", sgd]}
"<img src=y onerror=alert(2)>": {uniform: [0, 1]}
"""
TRAIN = """echo '<script>document.title = "broken"</script> output'
i=0
while [ $i -lt 4 ]; do
  i=$((i + 1))
  kolo report loss=$(awk "BEGIN { print $1 * 10 + $2 / $i }") depth_seen=$2 || exit 0
done
"""
# A trial that runs until it is told to end.
WAIT = "echo at work; while kolo report loss=1; do sleep 0.1; done\n"


def tune(kolo, folder, name, script, samples):
    return [kolo, "tune", "--space", str(folder / "space.yaml"), "--metric", "loss", "--mode", "min", "--search", "random",
            "--num-samples", str(samples), "--name", name, "--quiet", "--", "sh", str(folder / script), "{lr}", "{depth}"]


def prepare(kolo, folder):
    (folder / "space.yaml").write_text(SPACE)
    (folder / "train.sh").write_text(TRAIN)
    (folder / "wait.sh").write_text(WAIT)
    subprocess.run(tune(kolo, folder, STUDY, "train.sh", 12), check=True, stdout=subprocess.DEVNULL)
    for words in (["init", str(folder / "jobs")], ["app", "--name", "hello", "--executable", "echo hello"],
                  ["job", "--name", "greeting", "--workflow", "demo", "--application", "hello"],
                  ["job", "--name", "<b>answer", "--workflow", "demo", "--application", "hello"],
                  ["dep", "1", "2"]):
        subprocess.run([kolo, *words], check=True, stdout=subprocess.DEVNULL)


def filtered(text):
    return f"{{ const f = document.getElementById('filter'); f.value = {text!r}; f.dispatchEvent(new Event('input')); }}"


def check_pages(page, address, pictures):
    def look(name, place, *wanted):
        # After the first visit, the cookie does.
        page.open((address if name == "studies" else address.split("?")[0]) + "#" + place)
        for expression in wanted:
            page.wait_for(expression)
        shown = page.evaluate("document.documentElement.outerHTML")
        for bad in ('id="complaint"', "<img src", "<title>broken", "token="):
            assert bad not in shown, f"{name}: {bad} is on the page"
        assert not page.evaluate("location.href.includes('token')"), f"{name}: the token stays in the address"
        assert not page.complaints, f"{name}: {page.complaints}"
        if pictures:
            page.picture(os.path.join(pictures, f"dashboard-{name}.png"))

    look("studies", "/", says(STUDY), says("12 of 12"), "document.querySelector('.state.finished') !== null",
         "document.getElementById('live').textContent === 'live'")
    look("study", PLACE, drawn("history", "curves", "slices", "parallel", "contour", "importance", "timeline"),
         "document.getElementById('table').dataset.rows === '12'", says("12 TERMINATED"))
    lines = "document.querySelectorAll('#parallel polyline').length"
    page.wait_for(lines + " === 12")
    page.evaluate(filtered("trial < 5"))
    page.wait_for("document.getElementById('table').dataset.rows === '5' && " + says("the filter holds for 5"))
    page.wait_for(lines + " === 5 && document.querySelectorAll('#history circle').length === 5")
    page.evaluate(filtered("trial <"))
    page.wait_for("document.getElementById('unreadable').textContent !== ''")
    assert page.evaluate(lines) == 5, "a filter that cannot be read has changed what is drawn"
    refused = [one for one in page.complaints if "400" in one]
    assert len(refused) == 1 == len(page.complaints), page.complaints
    page.complaints.clear()
    page.evaluate(filtered(""))
    page.wait_for(lines + " === 12 && document.getElementById('unreadable').textContent === ''")
    page.evaluate("document.querySelector('.brush').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp' }))")
    page.wait_for(lines + " < 12 && document.getElementById('brushed').textContent.includes('of 12 trials')")
    page.evaluate("document.querySelector('.brush').dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))")
    page.wait_for(lines + " === 12")
    look("trial", PLACE + "/trial/3", drawn("trial-curves"), says("output"), says("4 iterations"), says("depth"))
    look("compare", PLACE + "/compare/1,2", drawn("curves"), says("trial 1"), says("trial 2"))
    look("jobs", "/jobs", says("greeting"), says("No launcher is at work"),
         "document.querySelectorAll('#graph a').length === 2 && document.querySelectorAll('#graph path').length === 1")
    page.evaluate("document.querySelectorAll('#graph a')[1].dispatchEvent(new MouseEvent('click', { bubbles: true }))")
    page.wait_for(says("it waits for job 1"))
    look("job", "/jobs/1", "document.querySelector('#explain p') !== null")
    page.evaluate("document.getElementById('kill').click()")
    confirm(page)
    page.wait_for(says("USER_KILLED"))


def check_life(page, kolo, folder, address):
    """A study that begins, and ends by a click, is seen by a page that nobody touches."""
    page.open(address.split("?")[0] + "#/")
    page.wait_for("document.getElementById('live').textContent === 'live'")
    study = subprocess.Popen(tune(kolo, folder, "alive", "wait.sh", 1), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        page.wait_for("document.querySelector('.state.running') !== null")
        page.evaluate("location.hash = '#/study/alive/trial/0'")
        page.wait_for(says("at work"))  # its output
        page.wait_for("document.querySelector('#suggested p') !== null")
        page.evaluate("location.hash = '#/study/alive'")
        page.wait_for("document.getElementById('stop') && !document.getElementById('stop').hidden")
        page.evaluate("document.getElementById('add').click()")
        page.wait_for("document.getElementById('dialog').open")
        page.evaluate("document.getElementById('number').value = 2")
        confirm(page)
        page.wait_for(says("of 3") + "||" + says("3 trials"))
        page.evaluate("document.getElementById('stop').click()")
        confirm(page)
        study.wait(timeout=chromium.PATIENCE)
        page.wait_for("document.getElementById('facts').innerText.startsWith('stopped')")
    finally:
        study.terminate()
        study.wait()


def check_restart(page, served, kolo, folder):
    """The page waits for a server that is gone, and goes on by itself when it is back."""
    place = served.address.split("?")[0]
    page.open(place + "#/")
    page.wait_for("document.getElementById('live').textContent === 'live'")
    served.stop()
    page.wait_for(says("not connected; trying again"))
    subprocess.run(tune(kolo, folder, "meanwhile", "train.sh", 1), check=True, stdout=subprocess.DEVNULL)
    served.start(port=int(place.rstrip("/").rsplit(":", 1)[1]))
    page.wait_for("document.getElementById('live').textContent === 'live' && " + says("meanwhile"))
    page.complaints.clear()  # the browser notes each attempt


def main():
    kolo = os.path.abspath(sys.argv[1])
    pictures = sys.argv[2] if len(sys.argv) > 2 else None
    need_browser()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        use_folder(kolo, folder)
        os.environ["KOLO_DB"] = str(folder / "jobs")
        prepare(kolo, folder)
        served = Served(kolo, folder)
        with served as (page, address):
            check_pages(page, address, pictures)
            check_life(page, kolo, folder, address)
            check_restart(page, served, kolo, folder)


if __name__ == "__main__":
    main()
