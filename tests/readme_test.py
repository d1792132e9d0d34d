#!/usr/bin/env python3
"""Checks that README.md and docs/*.md name only what exists. Usage: readme_test.py TUTTI

In blocks marked `sh`: programs and scripts exist, `tutti` knows the command, and the command's --help names the options.
In all text: relative links lead to files, and so do paths of examples.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def help_of(tutti, *command):
    result = subprocess.run([tutti, *command, "--help"], capture_output=True, text=True, timeout=60)
    return result.stdout if result.returncode == 0 else ""


def tutti_faults(tutti, words):
    """Faults of a call of `tutti` with these words behind it."""
    command, *arguments = words
    if not re.search(rf"^\s+{re.escape(command)}\b", help_of(tutti), re.MULTILINE):
        yield f"`tutti --help` does not list the command {command}"
        return
    known = set(re.findall(r"--[a-z][a-z-]*", help_of(tutti, command)))
    for option in (word.split("=")[0] for word in arguments if word.startswith("--")):
        if option not in known:
            yield f"`tutti {command} --help` does not list {option}, but {sorted(known)}"


def command_faults(tutti, line):
    words = shlex.split(line, comments=True)
    for name in ("build/bin/tutti", "tutti"):
        if name in words:
            yield from tutti_faults(tutti, words[words.index(name) + 1 :])
    for word in words:
        is_script = re.match(r"(launch|tests|slurm|cmake|examples|\.ci)/", word)
        if is_script and not (ROOT / word).exists():
            yield f"{word} does not exist"
    if "/" in words[0] and not words[0].startswith("build/") and not os.access(ROOT / words[0], os.X_OK):
        yield f"{words[0]} is not a program"


def faults_of(document, tutti):
    text = document.read_text()
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if line.strip():
                yield from (f"{line}: {fault}" for fault in command_faults(tutti, line))
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        if not (document.parent / link).exists():
            yield f"the link {link} leads nowhere"


def main(tutti):
    faults = [f"{document.relative_to(ROOT)}: {fault}" for document in DOCUMENTS for fault in faults_of(document, tutti)]
    for fault in faults:
        print(fault)
    commands = "\n".join(document.read_text() for document in DOCUMENTS).count("```sh\n")
    print(f"{len(DOCUMENTS)} documents, {commands} blocks of commands, {len(faults)} faults")
    return 1 if faults or commands == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
