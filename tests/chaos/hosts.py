"""Studies on several hosts, by ssh and on a cluster, whose links are cut and whose processes are killed.
Hosts are network namespaces of this machine (tests/integration/hosts/hosts.sh), which only root can make."""

import json
import os
import pathlib
import signal
import subprocess
import time

from common import KOLO, ROOT, Loss, Round
from studies import SPACE, trials_of, tune_command

# Makes hosts, names them and their folder, and does what it is told until its input ends.
DRIVER = """
source "$1"
hosts_up "$2" || exit
printf '%s\\n' "$hosts_dir" "$KOLO_SSH" "${hosts[@]}" ready
while read -r order host; do
  case "$order" in
    cut) cut_link "$host" ;;
    heal) heal_link "$host" ;;
  esac
  printf 'done\\n'
done
"""


class Hosts:
    """Hosts that can be cut off and healed."""

    def __init__(self, count):
        command = ["bash", "-c", DRIVER, "hosts", str(ROOT / "tests/integration/hosts/hosts.sh"), str(count)]
        self.driver = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        lines = list(iter(lambda: self.driver.stdout.readline().strip() or "ready", "ready"))
        if len(lines) < 2 + count:
            raise Loss("hosts cannot be made here")
        self.folder, self.ssh, self.names = pathlib.Path(lines[0]), lines[1], lines[2:]

    def tell(self, order, name):
        print(order, name, file=self.driver.stdin, flush=True)
        self.driver.stdout.readline()

    def cut_for(self, name, seconds):
        self.tell("cut", name)
        time.sleep(seconds)
        self.tell("heal", name)

    def at_first(self, command):
        return [self.folder / "on-host", self.names[0], *command]

    def pids(self, name):
        listed = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
        return [int(word) for word in listed.stdout.split()]

    def close(self):
        self.driver.stdin.close()
        self.driver.wait(60)


class Study:
    """Twelve trials on hosts, beside the same twelve on this machine alone."""

    def __init__(self, rng, folder, until, hosts, where):
        self.rng, self.folder, self.hosts = rng, folder, hosts
        self.round = Round("hosts", rng, folder, until)
        self.family = self.round.family
        # A host that hears nothing for two seconds ends what runs there.
        self.family.environment |= {
            "KOLO_HOST_LEASE": "2", "XDG_STATE_HOME": str(hosts.folder / "state"),
            "KOLO_SSH": f"{hosts.ssh} -o ServerAliveInterval=1 -o ServerAliveCountMax=2"}
        (folder / "space.yaml").write_text(SPACE)
        # What trials say reaches the study from other hosts, too: through files.
        (folder / "trial.py").write_text(REPORTING_TRIAL)
        self.storage = folder / "chaos.db"
        command = tune_command(folder, self.storage, folder / "results")
        at = command.index("--")
        self.command = hosts.at_first(command[:at] + where + command[at:])

    def cut_one(self):
        name = self.rng.choice(self.hosts.names[1:])
        self.hosts.cut_for(name, self.rng.choice([0.3, 1, 4]))
        self.family.kills["a cut link"] += 1

    def is_finished(self):
        listed = json.loads(self.family.run([KOLO, "studies", "--json", "--storage", self.storage], self.folder))
        return any(row["name"] == "chaos" and row["state"] == "finished" for row in listed)

    def play(self, fault, faults):
        calm = self.folder / "calm.db"
        self.family.run(tune_command(self.folder, calm, self.folder / "calm"), self.folder)
        self.round.keep_going(lambda: self.family.start(self.command, self.folder, self.round.log),
                              self.is_finished, fault, faults)
        wanted = trials_of(self.family.run, self.folder, calm)
        found = trials_of(self.family.run, self.folder, self.storage)
        if found != wanted:
            raise Loss(f"the trials differ:\n  {wanted}\n  {found}")


REPORTING_TRIAL = f"""
import os, subprocess, time
x, y = float(os.environ["KOLO_PARAM_X"]), float(os.environ["KOLO_PARAM_Y"])
for epoch in range(1, 6):
    time.sleep(0.05)
    subprocess.run([{str(KOLO)!r}, "report", f"loss={{x * y / epoch}}", f"epoch={{epoch}}"], check=True)
"""


def hosts(rng, folder, until):
    """A study whose trials run on three hosts by ssh."""
    three = Hosts(3)
    try:
        where = ["--hosts", ",".join(f"{name}:1" for name in three.names)]
        study = Study(rng, folder, until, three, where)
        study.play(lambda: study.cut_one() if rng.random() < 0.3 else study.family.kill_one(), 10)
        study.family.expect_nobody()
        return study.family.kills
    finally:
        three.close()


def cluster(rng, folder, until):
    """The same on a cluster, whose custodians are killed as well and started again by `kolo up`."""
    three = Hosts(3)
    try:
        study = Study(rng, folder, until, three, ["--cluster", "lab"])
        (folder / "cluster.yaml").write_text(
            "cluster_name: lab\n"
            f"provider: {{type: hosts, head_ip: {three.names[0]}, worker_ips: [{', '.join(three.names[1:])}]}}\n"
            f"auth: {{ssh_user: root, ssh_private_key: {three.folder}/id}}\n"
            "resources: {slots: 2}\n")
        up = three.at_first([KOLO, "up", folder / "cluster.yaml"])
        study.family.run(up, folder)

        def kill_custodian():
            name = rng.choice(three.names[1:])
            note = three.folder / "state/kolo/standing" / f"lab@{name}"
            os.kill(int(note.read_text().split()[-1]), signal.SIGKILL)
            study.family.kills["a custodian of the cluster"] += 1
            study.family.run(up, folder)

        def fault():
            rng.choice([study.cut_one, study.family.kill_one, study.family.kill_one, kill_custodian])()

        study.play(fault, 10)
        study.family.run(up, folder)  # whoever was killed last stands again
        deadline = time.monotonic() + 20
        while "6 of 6 slots free" not in study.family.run(three.at_first([KOLO, "status", "lab"]), folder):
            if time.monotonic() > deadline:
                raise Loss("slots of the cluster are not given back")
            time.sleep(0.2)
        study.family.run(three.at_first([KOLO, "down", "lab"]), folder)
        study.family.expect_nobody()
        return study.family.kills
    finally:
        three.close()
