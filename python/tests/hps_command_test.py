"""``kolo hps`` with run functions of Python, whatever these print and return."""

import csv
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = '''
import atexit, threading, time

import numpy as np

from kolo.hps import HpProblem

Problem = HpProblem()
Problem.add_hyperparameter([1.0, 2.0], "x")

def unfinished_line(config):
    print("progress...", end="")
    return config["x"]

def last_words(config):
    atexit.register(print, "bye")
    threading.Thread(target=lambda: (time.sleep(0.1), print("late"))).start()
    return config["x"]

def numbers_of_numpy(config):
    return {"objective": np.float32(config["x"]), "metadata": {"t": np.float32(0.5), "n": np.int64(3)}}

def names_of_objectives(config):
    return {"objective": config["x"], "metadata": {"objective": 99, "objective_0": 98}}

def memory(config):
    return "F_memory"

def no_number(config):
    return float("nan")
'''


class Command(unittest.TestCase):
    def rows(self, run, *options):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "my.py"), "w") as file:
                file.write(PROGRAM)
            command = [sys.argv[1], "hps", "ambs", "--problem", "my.py:Problem"]
            command += ["--run", f"my.py:{run}", "--max-evals", "2", "--log-dir", "log", *options]
            subprocess.run(
                command,
                cwd=folder,
                env={**os.environ, "KOLO_PYTHON": sys.executable},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=100,
            )
            with open(os.path.join(folder, "log", "results.csv")) as file:
                rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 2)
        return rows

    def succeeds(self, run, *options):
        rows = self.rows(run, *options)
        self.assertEqual([row["objective"] for row in rows], [row["p:x"] for row in rows], rows)
        return rows

    def test_what_is_printed_hides_no_result(self):
        self.succeeds("unfinished_line")
        self.succeeds("last_words")

    def test_ranks(self):
        self.succeeds("unfinished_line", "--evaluator", "ranks", "--num-ranks-per-node", "2")

    def test_metadata(self):
        for row in self.succeeds("numbers_of_numpy"):
            self.assertEqual((row["m:t"], row["m:n"]), ("0.5", "3"))

    def test_metadata_with_names_of_objectives(self):
        for row in self.succeeds("names_of_objectives"):
            self.assertEqual((row["m:objective_"], row["m:objective_0_"]), ("99", "98"))

    def test_failures(self):
        for run, failure in (("memory", "F_memory"), ("no_number", "F_nan")):
            self.assertEqual([row["objective"] for row in self.rows(run)], [failure] * 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=0)
