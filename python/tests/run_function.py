"""kolo.run, the horovod names, and what a fresh process sees."""

import os
import subprocess
import sys
import tempfile
import threading
import unittest

import kolo


def add_ranks(factor):
    import torch

    import kolo.torch as hvd

    hvd.init()
    return factor * int(hvd.allreduce(torch.tensor([hvd.rank()]), op=hvd.Sum)), hvd.rank()


PROGRAM = """
import horovod.torch as hvd
import horovod.common.exceptions
import torch
hvd.init()
assert hvd.Compression.fp16 and hvd.elastic.TorchState
assert horovod.common.exceptions.HorovodInternalError is hvd.HorovodInternalError
print("sum", int(hvd.allreduce(torch.tensor([1]), op=hvd.Sum)))
"""


class RunFunction(unittest.TestCase):
    def test_results_by_rank(self):
        self.assertEqual(kolo.run(add_ranks, args=(10,), np=2), [(10, 0), (10, 1)])

    def test_elastic_jobs(self):
        results = kolo.run(add_ranks, args=(10,), num_proc=2, min_num_proc=2, max_num_proc=2)
        self.assertEqual(results, [(10, 0), (10, 1)])

    def test_places_of_horovod_without_frameworks(self):
        code = (
            "import horovod, horovod.common.util as util\n"
            "assert util.split_list([1, 2, 3], 2) == [[1, 2], [3]] and util.gloo_built(verbose=True)\n"
            "assert util.extension_available('json') and not util.num_rank_is_power_2(6)\n"
            "assert util.is_version_greater_equal_than('2.10.1', '2.9')\n"
            "import os\n"
            "with util.env(KOLO_FOR_A_WHILE=1):\n"
            "    assert os.environ['KOLO_FOR_A_WHILE'] == '1'\n"
            "assert 'KOLO_FOR_A_WHILE' not in os.environ\n"
            "assert horovod.run is not None\n"
        )
        command = [
            sys.executable,
            "-c",
            "import kolo._names as n; n.install_horovod_names()\n" + code,
        ]
        subprocess.run(command, check=True, timeout=60)

    def test_failures_name_rank_and_error(self):
        def fail():
            raise KeyError("missing")

        with self.assertRaises(kolo.Error) as caught:
            kolo.run(fail, np=1)
        self.assertIn("missing", str(caught.exception))

    def test_bad_calls(self):
        for call in (
            lambda: kolo.run(3),
            lambda: kolo.run(add_ranks, np=0),
            lambda: kolo.run(add_ranks, np="two"),
            lambda: kolo.run(add_ranks, num_proc=1, min_num_proc=0),
            lambda: kolo.run(add_ranks, args=(threading.Lock(),), np=1),
        ):
            with self.assertRaises(ValueError):
                call()

    def test_programs_for_horovod_run_unchanged(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w") as file:
                file.write(PROGRAM)
            compat = os.path.join(os.path.dirname(__file__), "..", "compat")
            paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), compat]))
            for command, environment in (
                (["-m", "kolo.horovod", path], os.environ),
                ([path], dict(os.environ, PYTHONPATH=paths)),
            ):
                done = subprocess.run(
                    [sys.executable, *command], env=environment, capture_output=True, text=True
                )
                self.assertEqual((done.returncode, done.stdout), (0, "sum 1\n"), done.stderr)

    def test_a_missing_program_is_named(self):
        done = subprocess.run(
            [sys.executable, "-m", "kolo.horovod", "missing.py"], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "kolo.horovod: there is no program 'missing.py'\n")

    def test_the_package_does_not_import_a_framework(self):
        code = "import sys, kolo; assert not {'torch', 'numpy', 'tensorflow'} & set(sys.modules)"
        subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    unittest.main(verbosity=0)
