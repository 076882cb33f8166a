"""Programs that end while threads of kolo are in Python: with their own exit status and all output."""

import contextlib
import os
import subprocess
import sys
import tempfile
import unittest

from kolo.tune._handover import handover_folder

# Trials that do not end, each in Python or in a wait of it most of the time.
TRIALS = """
import sys, threading, time
from kolo import tune

running = threading.Semaphore(0)

def train(config):
    running.release()
    while True:
        time.sleep(config["pause"])

def study(**options):
    tune.run(
        train,
        config={"pause": tune.grid_search([0, 0.0001, 0.001, 60])},
        total_resources={"cpu": 4},
        local_dir=sys.argv[1],
        loggers=[],
        verbose=0,
        raise_on_failed_trial=False,
        **options,
    )
"""

LEFT_BEHIND = f"""{TRIALS}
study(time_budget_s=0.1)
print("this is not flushed")
sys.exit(3)
"""

IN_ANOTHER_THREAD = f"""{TRIALS}
threading.Thread(target=study, kwargs={{"metric": "loss", "mode": "min"}}, daemon=True).start()
for _ in range(4):
    running.acquire()
print("this is not flushed")
sys.exit(3)
"""

# The study's own thread calls Python all the time.
CALLBACKS = """
import sys, threading
from kolo import tune

def train(config):
    while True:
        tune.report(loss=1.0)

class Counts(tune.Callback):
    called = threading.Semaphore(0)

    def on_trial_result(self, iteration, trials, trial, result, **info):
        self.called.release()

options = dict(
    callbacks=[Counts()],
    stop=lambda trial, result: False,
    num_samples=2,
    local_dir=sys.argv[1],
    loggers=[],
    verbose=0,
)
threading.Thread(target=tune.run, args=(train,), kwargs=options, daemon=True).start()
for _ in range(10):
    Counts.called.acquire()
print("this is not flushed")
sys.exit(3)
"""


# Each way in which a forked process may come out of the function of a trial.
FORKS = """
import os, sys
from kolo import tune

def train(config):
    child = os.fork()
    if child == 0:
        print("a fork has ended")
        if config["way"] == "raise":
            raise ValueError("in a fork")
        if config["way"] == "exit":
            sys.exit(7)
        return
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    tune.report(status=status)

analysis = tune.run(
    train,
    config={"way": tune.grid_search(["return", "raise", "exit"])},
    local_dir=sys.argv[1],
    loggers=[],
    verbose=0,
    max_concurrent_trials=1,
)
found = {trial.config["way"]: trial.last_result["status"] for trial in analysis.trials}
assert found == {"return": 0, "raise": 1, "exit": 7}, found
print("this is not flushed")
sys.exit(3)
"""


# One that comes out of a step with a value that is none.
FORK_OF_A_STEP = """
import os, signal, sys
from kolo import tune

class Train(tune.Trainable):
    def step(self):
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # ends it if nothing else does
            return {"status": object()}
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return {"status": status, "done": True}

analysis = tune.run(Train, local_dir=sys.argv[1], loggers=[], verbose=0)
assert analysis.trials[0].last_result["status"] == 1, analysis.trials[0].last_result
print("this is not flushed")
sys.exit(3)
"""


# Its trial does not end.
PROCESSES = """
import sys, time
from kolo import tune

def train(config):
    while True:
        time.sleep(60)

class Tells(tune.Callback):
    def on_trial_start(self, iteration, trials, trial, **info):
        print("started", flush=True)

tune.run(
    train,
    executor="process",
    callbacks=[Tells()],
    local_dir=sys.argv[1],
    name=sys.argv[2],
    loggers=[],
    verbose=0,
)
"""


# It has a folder until its input ends.
HANDOVER = """
import sys
from kolo.tune._handover import handover_folder

with handover_folder(sys.argv[1]) as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


class Abandoned(unittest.TestCase):
    def folder_of_a_killed_owner(self, place):
        owner = subprocess.Popen(
            [sys.executable, "-c", HANDOVER, place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with owner:
            folder = owner.stdout.readline().strip()
            owner.kill()
        self.assertTrue(os.path.isdir(folder), folder)
        return folder

    def test_folders_that_the_hosts_of_a_cluster_see(self):
        with tempfile.TemporaryDirectory() as place:
            killed = self.folder_of_a_killed_owner(place)
            of_another_host = self.folder_of_a_killed_owner(place)
            self.assertFalse(os.path.exists(killed))
            with open(os.path.join(of_another_host, "owner"), "w") as file:
                file.write("another host")
            with handover_folder(place) as own:
                self.assertTrue(os.path.exists(of_another_host))
                self.folder_of_a_killed_owner(place)
                self.assertTrue(os.path.exists(own))

    def test_folders_of_studies_that_were_killed(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ends:
            place = os.path.join(folder, "tmp")
            os.mkdir(place)

            def study(name):
                started = subprocess.Popen(
                    [sys.executable, "-c", PROCESSES, folder, name],
                    env={**os.environ, "TMPDIR": place},
                    stdout=subprocess.PIPE,
                )
                ends.callback(started.communicate)
                ends.callback(started.kill)
                started.stdout.readline()
                return started

            def folders():
                return {name for name in os.listdir(place) if name.startswith(".kolo-trial-")}

            alive = study("alive")
            kept = folders()
            self.assertEqual(len(kept), 1)
            killed = study("killed")
            self.assertEqual(len(folders()), 2)
            killed.kill()
            killed.wait()
            left = folders()
            self.assertEqual(len(left), 2)
            study("next")
            now = folders()
            self.assertEqual(len(now), 2)
            self.assertEqual(now & left, kept)
            self.assertIsNone(alive.poll())


class Exit(unittest.TestCase):
    def ends_as_it_says(self, program, output="this is not flushed\n"):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", program, folder], capture_output=True, text=True, timeout=60
            )
        self.assertEqual(
            (done.returncode, done.stdout), (3, output), done.stderr
        )

    def test_trials_that_were_left_behind(self):
        self.ends_as_it_says(LEFT_BEHIND)

    def test_a_fork_of_a_step(self):
        self.ends_as_it_says(FORK_OF_A_STEP)

    def test_forks_of_trials(self):
        self.ends_as_it_says(FORKS, "a fork has ended\n" * 3 + "this is not flushed\n")

    def test_a_study_in_another_thread(self):
        for _ in range(3):
            self.ends_as_it_says(IN_ANOTHER_THREAD)

    def test_a_study_that_calls_python(self):
        for _ in range(5):
            self.ends_as_it_says(CALLBACKS)


if __name__ == "__main__":
    unittest.main(verbosity=0)
