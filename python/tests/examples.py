"""Runs the programs of examples/python and looks at what they print.

examples.py KOLO [Examples|WithTensorFlow]
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

EXAMPLES = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "python"
)
KOLO = sys.argv.pop(1)


class Programs(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)

    def output(self, *words):
        done = subprocess.run(
            words,
            cwd=self._folder.name,
            env=dict(os.environ, KOLO_RESULTS=self._folder.name),
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def python(self, name, *words):
        return self.output(sys.executable, os.path.join(EXAMPLES, name), *words)

    def accuracy_on_two_ranks(self, name):
        program = os.path.join(EXAMPLES, name)
        text = self.output(KOLO, "run", "-np", "2", sys.executable, program)
        return float(re.search(r"accuracy (0\.\d+)", text).group(1))


class WithTensorFlow(Programs):
    def test_keras_fit(self):
        self.assertGreater(self.accuracy_on_two_ranks("keras_fit.py"), 0.78)

    def test_tensorflow2_tape(self):
        self.assertGreater(self.accuracy_on_two_ranks("tensorflow2_tape.py"), 0.78)


class Examples(Programs):
    def test_torch_train(self):
        self.assertGreater(self.accuracy_on_two_ranks("torch_train.py"), 0.78)
        self.assertTrue(os.path.exists(os.path.join(self._folder.name, "checkpoint.pt")))

    def test_tune_horovod(self):
        text = self.python("tune_horovod.py", "1")
        self.assertIn("9 trials", text)
        self.assertIn("'lr': 0.3", text)

    def test_tune_bayesopt(self):
        text = self.python("tune_bayesopt.py")
        self.assertAlmostEqual(
            float(re.search(r"best lr (0\.\d+)", text).group(1)), 0.05, delta=0.01
        )

    def test_hps_problem(self):
        text = self.python("hps_problem.py")
        self.assertGreater(float(re.search(r"objective (-?\d+\.\d+)", text).group(1)), -5)

    def test_hps_problem_from_the_command_line(self):
        program = os.path.join(EXAMPLES, "hps_problem.py")
        os.environ["KOLO_PYTHON"] = sys.executable
        text = self.output(
            KOLO,
            "hps",
            "random",
            "--problem",
            f"{program}:Problem",
            "--run",
            f"{program}:run",
            "--max-evals",
            "4",
            "--log-dir",
            "log",
        )
        with open(os.path.join(self._folder.name, "log", "results.csv")) as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), 5, text)
        self.assertIn("p:x0", lines[0])
        self.assertTrue(any("-50.0" in line or ",-50" in line for line in lines), lines)

    def test_a_typo_in_the_name_of_a_run_function_is_found_before_the_first_evaluation(self):
        program = os.path.join(EXAMPLES, "hps_problem.py")
        os.environ["KOLO_PYTHON"] = sys.executable
        words = [KOLO, "hps", "random", "--problem", f"{program}:Problem", "--max-evals", "4"]
        for run, wanted in (
            (f"{program}:runn", "has no 'runn'; did you mean 'run'?"),
            ("./missing.py:run", "there is no such file"),
        ):
            done = subprocess.run(
                [*words, "--run", run],
                cwd=self._folder.name,
                capture_output=True,
                text=True,
                timeout=300,
            )
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(wanted, done.stderr)

    def test_run_function(self):
        self.assertIn("[1.5, 1.5]", self.python("run_function.py"))


if __name__ == "__main__":
    unittest.main(verbosity=0, defaultTest=sys.argv.pop(1) if len(sys.argv) > 1 else "Examples")
