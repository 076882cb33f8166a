#!/usr/bin/env python3
"""Checks with Clang that what a lock guards is touched under the lock (src/base/mutex.h).

threads_lint.py COMPILE_COMMANDS.json CLANG FILE…

FILEs are C++ files relative to the root. Checked are sources that use base/mutex.h, or a header that
does. A std::mutex is not seen by the analysis, so it is an error. Sources with libtorch's header are
left out: Clang does not compile it with GCC 12's library in C++20.
"""

import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

MUTEX_HEADER = "base/mutex.h"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
UNSEEN = re.compile(r"\bstd::(mutex|shared_mutex|condition_variable)\b")
# Public headers may not include internal ones.
EXEMPT = re.compile(r"^(src/base/mutex\.h|include/|tests/|bench/|examples/)")


def clang_command(entry, clang):
    """The flags of a compilation that say what is read; the rest is for another compiler."""
    words = shlex.split(entry["command"])
    flags = []
    for word, following in zip(words, words[1:] + [""]):
        if word == "-isystem":
            flags += [word, following]
        elif word.startswith(("-D", "-I", "-std=")):
            flags.append(word)
    checks = ["-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety"]
    return [clang, *flags, *checks, entry["file"]]


def main():
    database, clang, *files = sys.argv[1:]
    text = {}
    for name in files:
        with open(name, encoding="utf-8") as file:
            text[name] = file.read()
    included = {name: set(INCLUDE.findall(content)) for name, content in text.items()}
    lockers = {name.split("/", 1)[1] for name in files if MUTEX_HEADER in included[name]}
    lockers.add(MUTEX_HEADER)
    sources = {name for name in files if included[name] & lockers}

    bad = 0
    for name in files:
        for number, line in enumerate(text[name].splitlines(), 1):
            if UNSEEN.search(line) and not EXEMPT.match(name):
                print(f"{name}:{number}: use Mutex, MutexLock and CondVar of {MUTEX_HEADER}")
                bad += 1

    def check(entry):
        return subprocess.run(clang_command(entry, clang), cwd=entry["directory"], text=True,
                              stderr=subprocess.PIPE, check=False)

    with open(database, encoding="utf-8") as file:
        entries = [entry for entry in json.load(file)
                   if os.path.relpath(entry["file"]) in sources and "include/torch" not in entry["command"]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(check, entries):
            sys.stdout.write(result.stderr)
            bad += result.returncode != 0
    return 1 if bad or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
