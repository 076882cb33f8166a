#!/usr/bin/env python3
"""Checks with Clang that what a lock guards is touched under the lock (src/base/mutex.h).

threads_lint.py COMPILE_COMMANDS.json CLANG FILE…

FILEs are C++ files relative to the root. Checked are sources that use base/mutex.h, or a header that
does. A std::mutex is not seen by the analysis, so it is an error. Sources with libtorch's header are
read as one file, because nearly all of the time goes into that header; tidy_vector.inc has Clang 19
read it. Where libtorch is missing, they are left out, which is said.
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
READ_LIBTORCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tidy_vector.inc")
EXEMPT = re.compile(r"^(src/base/mutex\.h|tests/|bench/|examples/)")


def clang_command(entries, clang):
    """The flags of compilations that say what is read; the rest is for another compiler."""
    flags = {}  # a set that keeps the order
    for entry in entries:
        words = shlex.split(entry["command"])
        for word, following in zip(words, words[1:] + [""]):
            if word == "-isystem":
                flags[word, following] = None
            elif word.startswith(("-D", "-I", "-std=")):
                flags[word,] = None
    checks = ["-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety"]
    return [clang, *(word for flag in flags for word in flag), *checks]


def check_one(entry, clang):
    return subprocess.run([*clang_command([entry], clang), entry["file"]], cwd=entry["directory"], text=True,
                          stderr=subprocess.PIPE, check=False)


def check_together(entries, clang):
    command = [*clang_command(entries, clang), "-include", READ_LIBTORCH, "-x", "c++", "-"]
    lines = "".join(f'#include "{entry["file"]}"\n' for entry in entries)
    return subprocess.run(command, cwd=entries[0]["directory"], text=True, input=lines, stderr=subprocess.PIPE,
                          check=False)


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

    with open(database, encoding="utf-8") as file:
        entries = {os.path.relpath(entry["file"]): entry for entry in json.load(file)}
    missing = [name for name in sorted(sources) if re.match(r"src/.*\.cc$", name) and name not in entries]
    if missing:
        print(f"not checked, because libtorch is not in this build: {', '.join(missing)}")
    entries = [entries[name] for name in sorted(sources) if name in entries]
    with_torch = [entry for entry in entries if "include/torch" in entry["command"]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        # First what takes longest.
        running = [pool.submit(check_together, with_torch, clang)] if with_torch else []
        running += [pool.submit(check_one, entry, clang) for entry in entries if entry not in with_torch]
        for result in (future.result() for future in running):
            sys.stdout.write(result.stderr)
            bad += result.returncode != 0
    return 1 if bad or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
