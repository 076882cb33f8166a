#!/usr/bin/env python3
"""scripts/bench dashboard: a study of a million trials, and one with a thousand trials that run, in a real browser.

    dashboard_bench.py --bin DIR [--quick] [--json FILE]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/integration/dashboard"))
import browser as chromium

QUERIES = [{"filter": "loss < 1.5"}, {"filter": "p00 == choice3 and p07 < 0.5"}, {"sort": "loss"}, {"sort": "p11", "desc": 1},
           {"filter": "m3 > 0.2 and loss < 1.9", "sort": "m4"}, {"sort": "p00", "offset": 5000},
           {"filter": "p05 >= 0.25 and p05 < 0.26", "sort": "loss"}, {"offset": 100000}]


class Bench:
    def __init__(self, arguments):
        self.bin, self.values = pathlib.Path(arguments.bin), {}

    def ratio(self, name, value, goal):
        self.values[name] = value
        print(f"RATIO {name} {value:.4g} goal <={goal:g} {'PASS' if value <= goal else 'FALLS-SHORT'}", flush=True)

    def make(self, database, trials, reports, metrics, state):
        begin = time.monotonic()
        subprocess.run([self.bin / "dashboard_study", "--db", database, "--trials", str(trials), "--reports", str(reports),
                        "--metrics", str(metrics), "--state", state], check=True)
        size = sum(file.stat().st_size for file in database.parent.glob(database.name + "*"))
        print(f"  {trials} trials, {trials * reports * metrics} reported values: {size / 1e9:.2f} GB, "
              f"made in {time.monotonic() - begin:.0f} s", flush=True)

    def serve(self, database):
        server = subprocess.Popen([self.bin / "kolo", "dashboard", "--storage", str(database), "--port", "0"],
                                  stdout=subprocess.PIPE, text=True)
        return server, server.stdout.readline().strip()


def fetch_ms(page, parameters):
    """How long the page waits for an answer of the server, and for its reading."""
    page.evaluate(f"""window.took = null; (async () => {{ const begin = performance.now();
        await get('trials', {json.dumps({"name": "large", **parameters})}); window.took = performance.now() - begin; }})()""")
    page.wait_for("window.took !== null")
    return page.evaluate("window.took")


def first_paint_s(page, address):
    """From the navigation to the end of the first drawing, in the page's own time."""
    page.open(address + "#/study/large")
    return page.evaluate("performance.getEntriesByName('ready')[0].startTime") / 1000


def large(bench, page, folder, quick):
    trials = 50_000 if quick else 1_000_000
    database = folder / "large.db"
    bench.make(database, trials, 10, 10, "ended")
    server, address = bench.serve(database)
    try:
        bench.ratio("first_paint_s", first_paint_s(page, address), 1)
        begin = time.monotonic()
        page.wait_for("S && S.read === S.total", 300)
        print(f"  the whole study was read {time.monotonic() - begin:.1f} s later")
        bench.ratio("paint_again_s", first_paint_s(page, address), 1)
        size = page.evaluate("""performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
            .reduce((sum, one) => sum + one.transferSize, 0)""")
        bench.ratio("page_kB", size / 1000, 500)
        times = sorted(fetch_ms(page, query) for query in QUERIES for _ in range(5))
        bench.ratio("query_p95_ms", times[int(len(times) * 0.95)], 200)
        status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        bench.ratio("server_MB", peak / 1000, 1000)
    finally:
        server.terminate()
        server.wait()


def report(bench, folder):
    """The page of report-html, of 100,000 trials with 20 parameters: it is to be sent by mail."""
    database, page = folder / "report.db", folder / "report.html"
    bench.make(database, 100_000, 10, 10, "ended")
    begin = time.monotonic()
    subprocess.run([bench.bin / "kolo", "report-html", "large", "--storage", database, "-o", page], check=True, stdout=subprocess.DEVNULL)
    print(f"  report-html took {time.monotonic() - begin:.1f} s")
    bench.ratio("report_html_MB", page.stat().st_size / 1e6, 5)


def live(bench, page, folder, quick):
    database = folder / "live.db"
    bench.make(database, 1000, 10, 10, "running")
    server, address = bench.serve(database)
    try:
        first_paint_s(page, address)
        # When a frame with a new best value has been drawn. Only the summary is looked at: reading the text of the whole
        # page after each change would take longer than most drawings.
        page.evaluate("""window.shownAt = {}; window.seenBest = {}; window.watch = new MutationObserver(() => {
            const best = /Best loss ([0-9.e-]+)/.exec(document.getElementById('facts').textContent);
            if (!best || best[1] in seenBest) return;
            seenBest[best[1]] = true;
            requestAnimationFrame(() => {  // the frame is drawn after this, and before the next message is taken
                const drawn = new MessageChannel();
                drawn.port1.onmessage = () => { shownAt[best[1]] = performance.timeOrigin + performance.now(); };
                drawn.port2.postMessage(0); }); });
            watch.observe(document.getElementById('facts'), {subtree: true, childList: true, characterData: true});""")
        seconds = 5 if quick else 20
        written = subprocess.run([bench.bin / "dashboard_study", "--db", database, "--metrics", "10", "--live", str(seconds)],
                                 check=True, stdout=subprocess.PIPE, text=True).stdout
        time.sleep(1)
        seen = {float(best): at for best, at in page.evaluate("window.shownAt").items()}
        # A change that came with the next one is on the page when that one is.
        times = []
        for line in written.splitlines():
            at, loss = line.split()
            shown = [when for best, when in seen.items() if best <= float(loss) + 1e-9]
            if shown:
                times.append(min(shown) - float(at))
        times.sort()
        print(f"  {len(times)} reports were seen; median {statistics.median(times):.0f} ms, most {times[-1]:.0f} ms")
        bench.ratio("report_to_pixels_ms", statistics.median(times), 100)
        bench.ratio("report_to_pixels_p95_ms", times[int(len(times) * 0.95)], 100)
    finally:
        server.terminate()
        server.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if not os.path.exists(chromium.PROGRAM):
        sys.exit("bench: there is no Chromium; scripts/setup test installs it")
    bench = Bench(arguments)
    with tempfile.TemporaryDirectory(prefix="kolo-bench") as scratch:
        folder = pathlib.Path(scratch)
        page = chromium.Browser(folder / "browser")
        try:
            live(bench, page, folder, arguments.quick)
            large(bench, page, folder, arguments.quick)
            report(bench, folder)
        finally:
            page.close()
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(bench.values, indent=2))


if __name__ == "__main__":
    main()
