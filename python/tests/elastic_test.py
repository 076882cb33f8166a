"""Elastic jobs of Python programs: a rank is lost, one is asked to go, one comes."""

import glob
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

KOLO = sys.argv.pop(1)
FOLDER = os.path.dirname(os.path.abspath(__file__))


class Job(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.hosts = os.path.join(self._folder.name, "hosts")
        with open(self.hosts, "w") as file:
            file.write("localhost:3\n")

    def command(self, program, *words, options=()):
        script = ["--host-discovery-script", f"cat {self.hosts}"]
        program = [sys.executable, os.path.join(FOLDER, program), self.hosts]
        return [KOLO, "run", "-np", "3", "--min-np", "2", *script, *options, *program, *words]

    def run_job(self, *words, options=(), environment=()):
        return subprocess.run(
            self.command(*words, options=options),
            capture_output=True,
            text=True,
            timeout=100,
            env={**os.environ, **dict(environment)},
        )

    def wait_until(self, condition):
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def check(self, done, lost_at, joined_at):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("of 3 is done"), 3, done.stdout + done.stderr)
        self.assertIn(f"rank 0 of 2 at {lost_at}", done.stdout)
        self.assertIn(f"rank 2 of 3 at {joined_at}", done.stdout)


class WithTensorFlow(Job):
    def test_a_killed_rank_and_a_new_one(self):
        self.check(self.run_job("elastic_tensorflow.py"), 6, 12)


class WithTorch(Job):
    def test_a_killed_rank_and_a_new_one(self):
        done = self.run_job("elastic_program.py", "kill")
        self.check(done, 24, 48)
        self.assertIn("killed by signal 9", done.stderr)

    def test_a_rank_that_is_asked_to_go_and_a_new_one(self):
        done = self.run_job("elastic_program.py", "notice")
        self.check(done, 24, 48)
        self.assertNotIn("killed", done.stderr)

    def test_a_killed_launcher_and_a_resumed_job(self):
        commits = os.path.join(self._folder.name, "commits")
        sign = os.path.join(self._folder.name, "sign")
        endless = self.command(
            "elastic_commits.py", "1000000", sign, options=["--commit-dir", commits]
        )
        with subprocess.Popen(endless, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
            self.wait_until(lambda: os.path.exists(sign) or job.poll() is not None)
            self.assertIsNone(job.poll())
            job.kill()
        # The ranks end with their step, and write it.
        self.wait_until(lambda: glob.glob(os.path.join(commits, "commit-*.kolo")))
        (newest, *_) = sorted(os.listdir(commits), reverse=True)
        done = int(re.search(r"\d+", newest).group())
        self.assertGreaterEqual(done, 5)
        resumed = self.run_job(
            "elastic_commits.py", str(done + 5), sign, options=["--resume", commits]
        )
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        self.assertEqual(resumed.stdout.count(f"of 3 from step {done} on"), 3, resumed.stdout)
        self.assertEqual(resumed.stdout.count(f"{done + 5} steps"), 3, resumed.stdout)

    def test_a_meeting_that_fails(self):
        variables = {"KOLO_TIMEOUT_SECONDS": "2", "KOLO_START_TIMEOUT": "2"}
        done = self.run_job("elastic_late.py", environment=variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("all steps"), 2, done.stdout + done.stderr)
        self.assertIn("of 2 at 5", done.stdout)

    def test_a_directory_that_cannot_be_written_ends_no_job(self):
        variables = {"KOLO_COMMIT_DIR": "/dev/null/commits", "KOLO_COMMIT_EVERY": "1"}
        done = self.run_job("elastic_commits.py", "9", self.hosts, environment=variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("9 steps"), 3, done.stdout)
        self.assertEqual(done.stderr.count("could not go to disk"), 1, done.stderr)

    def test_damaged_commits(self):
        commits = os.path.join(self._folder.name, "commits")

        def run(steps, *options):
            return self.run_job("elastic_commits.py", str(steps), self.hosts, options=options)

        def newest():
            return os.path.join(commits, f"commit-{6:012}.kolo")

        def damage(name):
            with open(name, "r+b") as file:
                file.seek(40)
                file.write(b"damage")

        done = run(6, "--commit-dir", commits, "--commit-every", "1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        damage(newest())
        resumed = run(6, "--resume", commits, "--commit-every", "1")
        self.assertEqual(resumed.returncode, 0, resumed.stdout + resumed.stderr)
        self.assertEqual(resumed.stdout.count("of 3 from step 5 on"), 3, resumed.stdout)
        self.assertTrue(os.path.exists(newest() + ".damaged"), resumed.stderr)

        for name in glob.glob(os.path.join(commits, "commit-*.kolo")):
            damage(name)
        # Hosts may come for so long.
        refused = run(6, "--resume", commits, "--elastic-timeout", "2")
        self.assertNotEqual(refused.returncode, 0, refused.stdout)
        self.assertIn("is whole", refused.stderr)
        self.assertIn("could not take the state of the job from disk", refused.stderr)
        self.assertNotIn("from step", refused.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=0)
