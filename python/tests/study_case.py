"""What tests of studies have in common: a folder of their own, and no output."""

import tempfile
import unittest

from kolo import tune


class StudyCase(unittest.TestCase):
    cpus = 4

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)

    def run_study(self, trainable, **options):
        options.setdefault("verbose", 0)
        options.setdefault("loggers", [])
        options.setdefault("total_resources", {"cpu": self.cpus})
        return tune.run(trainable, local_dir=self._folder.name, **options)
