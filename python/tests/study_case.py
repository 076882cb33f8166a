"""What tests of studies have in common: a folder of their own, and no output."""

import contextlib
import resource
import tempfile
import unittest

from kolo import tune


@contextlib.contextmanager
def full_disk(size):
    """Inside, no file may become longer than this: writing more fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


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
