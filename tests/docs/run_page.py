#!/usr/bin/env python3
"""Does what a page tells its reader to do, and compares what the reader would see.

run_page.py PAGE BIN_DIR      (BIN_DIR comes first in PATH; KOLO is the folder of the clone)

In a new folder, from top to bottom:
 - a block of yaml, sh or python that begins with a comment of one word, `# space.yaml`, becomes that file;
 - lines of a ```console block that begin with `$ ` are run, all in one shell; a `\\` at the end of a line
   continues it. The lines below are what it prints, standard error included: `…` stands for any text,
   and a line that is nothing but `…` for any number of lines. A command must end with status 0.
Other blocks are for the eye.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

MARK = "\x01"


def blocks_of(text):
    """Yields (number of the first line, language, lines) of each fenced block."""
    lines, language, start = None, "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if lines is None and line.startswith("```"):
            lines, language, start = [], line[3:].strip(), number + 1
        elif lines is not None and line.startswith("```"):
            yield start, language, lines
            lines = None
        elif lines is not None:
            lines.append(line)


def commands_of(start, lines):
    """Yields (line number, command, expected lines) of a console block."""
    command, expected, at, continues = None, [], 0, False
    for number, line in enumerate(lines, start):
        if continues:
            command += "\n" + line
        elif line.startswith("$ "):
            if command is not None:
                yield at, command, expected
            command, expected, at = line[2:], [], number
        elif command is None:
            sys.exit(f"line {number}: a console block begins with a command")
        else:
            expected.append(line)
            continue
        continues = line.endswith("\\")
    if command is not None:
        yield at, command, expected


def pattern_of(expected):
    """A regular expression for what a command prints."""
    parts = []
    for line in expected:
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(map(re.escape, line.split("…"))) + r"[ ]*\n")
    return "".join(parts)


def script_of(page, folder):
    """The steps of the page as a shell script, and what each command should print."""
    script, checks = ["exec 2>&1"], []
    for start, language, lines in blocks_of(page.read_text()):
        name = re.fullmatch(r"# (\S+\.\S+)", lines[0]) if lines else None
        if language in ("yaml", "sh", "python") and name:
            ending = f"KOLO_{start}_END"
            script += [f"cat >'{name[1]}' <<'{ending}'", *lines, ending]
            if language == "sh":
                script.append(f"chmod +x '{name[1]}'")
        elif language == "console":
            for number, command, expected in commands_of(start, lines):
                script += [f"printf '{MARK}%s\\n' {number}", command,
                           f"status=$?; printf '{MARK}status %s\\n' $status"]
                checks.append((number, command, expected))
    return "\n".join(script) + "\n", checks


def main():
    page, bin_dir = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute()
    with tempfile.TemporaryDirectory(prefix="kolo-page") as folder:
        script, checks = script_of(page, folder)
        if not checks:
            sys.exit(f"{page}: no command to run")
        environment = dict(os.environ, PATH=f"{bin_dir}:{os.environ['PATH']}", HOME=folder, TERM="dumb",
                           LC_ALL="C.UTF-8", KOLO=str(page.absolute().parents[2]))
        for name in ("KOLO_DB", "KOLO_STORAGE"):
            environment.pop(name, None)
        output = subprocess.run(["bash", "--norc", "-c", script], cwd=folder, env=environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout
    said = {}
    for part in output.split(MARK)[1:]:
        head, _, rest = part.partition("\n")
        if head.startswith("status "):
            said[number] = (said[number][0], int(head[7:]))
        else:
            number = int(head)
            said[number] = (rest, None)
    failed = 0
    for number, command, expected in checks:
        text, status = said.get(number, ("", None))
        # The last line of a program need not end.
        text = text if text.endswith("\n") or not text else text + "\n"
        if status != 0 or (expected and not re.fullmatch(pattern_of(expected), text)):
            failed += 1
            print(f"{page}:{number}: $ {command}\n  ended with status {status}; expected:")
            print("".join(f"  | {line}\n" for line in expected) + "  printed:")
            print("".join(f"  | {line}\n" for line in text.splitlines()))
    print(f"{page.name}: {len(checks)} commands, {failed} differ from the page")
    sys.exit(1 if failed else 0)


main()
