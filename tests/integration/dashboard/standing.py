"""A cluster of one host, this one, without ssh; a second host of it never answers."""
import json
import os
import struct
import subprocess


class Cluster:
    def __init__(self, kolo, state, name, slots):
        def text(value):
            return struct.pack("<I", len(value)) + value

        key = os.urandom(32)
        offer = struct.pack("<QiiI", 1, slots, 0, 0)
        order = text(name.encode()) + text(key) + text(b"127.0.0.1") + text(offer) + struct.pack("<QIB", 0, 20, 0)
        said = subprocess.run([kolo, "custodian", "standing"], input=order, stdout=subprocess.PIPE, check=True).stdout.split()
        address = said[1].decode()
        self.words = [kolo, "down", name, "--force", "--timeout", "2"]
        folder = state / "kolo/clusters" / name
        os.makedirs(state / "kolo", exist_ok=True)
        os.mkdir(folder.parent, mode=0o700)
        os.mkdir(folder, mode=0o700)
        (folder / "key").write_bytes(key)
        members = [{"host": "here", "address": address}, {"host": "away", "address": "127.0.0.1:1"}]
        (folder / "cluster.json").write_text(json.dumps(
            {"kolo": kolo, "ssh": {"user": "", "identity_file": "", "port": 22}, "members": members}))

    def end(self):
        subprocess.run(self.words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
