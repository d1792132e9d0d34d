#!/usr/bin/env python3
"""Checks the rules of the source tree that a compiler does not check. Usage: layering_test.py [ROOT]

layering: includes go one way (comm, data -> src/graph -> src/program -> src/train -> partition -> launch), each C
library is included in one place, and no folder is named after nothing.
style: include guards are right, no other preprocessor conditions, no `using namespace` in headers.
"""

import re
import sys
from pathlib import Path

# The folders each folder may include from, beside itself.
MAY_INCLUDE = {
    "comm": [],
    "data": [],
    "src/graph": ["data"],
    "src/program": ["data", "src/graph"],
    "src/train": ["comm", "data", "src/graph", "src/program"],
    "partition": ["comm", "data", "src/graph", "src/program", "src/train"],
    "launch": ["comm", "data", "src/graph", "src/program", "src/train", "partition"],
    "tests": ["comm", "data", "src/graph", "src/program", "src/train", "partition", "launch"],
    "bench": ["comm", "data", "src/graph", "src/program", "src/train", "partition", "launch"],
    "cmake": [],
}
# A library's headers, and the places that alone may include them.
LIBRARY_PLACES = {
    r"hdf5\.h|H5\w+\.h": ["data/hdf5_file.", "tests/hdf5_file_test."],
    r"mpi\.h": ["comm/", "tests/", "bench/"],
    r"(ATen|torch|c10)/.*": ["src/", "partition/", "launch/", "tests/", "bench/", "cmake/"],
}
# The files that may ask the compiler what it compiles for.
PLATFORM_FILES = ["src/train/simd_level."]
BANNED_FOLDERS = {"utils", "util", "common", "helpers", "misc"}


def folder_of(path):
    """The layer that a path relative to the root belongs to."""
    return "/".join(path.parts[: 2 if path.parts[0] == "src" else 1])


def include_faults(path, lines):
    layer = folder_of(path)
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)', line)
        if not match:
            continue
        included = match[2]
        target = folder_of(Path(included)) if "/" in included else layer
        if match[1] == '"' and target not in [layer, *MAY_INCLUDE[layer]]:
            yield f"{path}:{number}: {layer} may include from {[layer, *MAY_INCLUDE[layer]]}, found {included}"
        for pattern, places in LIBRARY_PLACES.items():
            if re.fullmatch(pattern, included) and not any(path.as_posix().startswith(place) for place in places):
                yield f"{path}:{number}: {included} may only be included in {places}"


def style_faults(path, lines, explained):
    is_header = path.suffix == ".h"
    conditional = re.compile(r"\s*#\s*(if|el|endif)")
    directives = [(number, line.strip()) for number, line in enumerate(lines, 1) if conditional.match(line)]
    if is_header:
        guard = "TUTTI_" + re.sub(r"\W", "_", path.as_posix()).upper()
        code = [line for line in lines if line.strip() and not line.startswith("//")]
        if code[:2] != [f"#ifndef {guard}", f"#define {guard}"] or code[-1] != "#endif":
            yield f"{path}:1: expected the include guard {guard} around the whole header"
        directives = directives[1:-1]
        for number, line in enumerate(lines, 1):
            if re.match(r"\s*using\s+namespace\b", line):
                yield f"{path}:{number}: `using namespace` in a header"
    if not any(path.as_posix().startswith(place) for place in PLATFORM_FILES):
        for number, directive in directives:
            yield f"{path}:{number}: expected no preprocessor condition (choose the source in CMake), found {directive}"
    if not explained and not (lines and lines[0].startswith("// ")):
        yield f"{path}:1: expected a first line that says what the file is"


def is_explained(path, sources):
    """Whether a source needs no sentence of its own: its header has it, or its name says which unit it tests."""
    return path.suffix == ".cpp" and (path.with_suffix(".h") in sources or path.name.endswith("_test.cpp"))


# One line for each rule that breaks it, to show that the rules can fail.
PLANTED = [
    ("data/x.cpp", '#include "src/graph/graph.h"', "may include from"),
    ("src/graph/x.cpp", '#include "src/train/optimizer.h"', "may include from"),
    ("partition/x.cpp", '#include "launch/job.h"', "may include from"),
    ("src/train/x.cpp", "#include <hdf5.h>", "may only be included in"),
    ("launch/x.cpp", "#include <mpi.h>", "may only be included in"),
    ("comm/x.cpp", "#include <ATen/ATen.h>", "may only be included in"),
    ("comm/x.cpp", "#ifdef DEBUG", "no preprocessor condition"),
    ("comm/x.cpp", "int x;", "first line"),
    ("comm/x.h", "using namespace std;", "using namespace"),
    ("comm/x.h", "#ifndef X_H", "include guard"),
]


def silent_rules():
    for name, line, expected in PLANTED:
        faults = [*include_faults(Path(name), [line]), *style_faults(Path(name), [line], False)]
        if not any(expected in fault for fault in faults):
            yield f"layering_test.py: expected a fault with '{expected}' for {name}: {line}, found {faults}"


def main(root):
    sources = [
        path.relative_to(root)
        for layer in MAY_INCLUDE
        for path in sorted((root / layer).rglob("*"))
        if path.suffix in (".h", ".cpp")
    ]
    faults = [*silent_rules()]
    for path in sources:
        lines = (root / path).read_text().splitlines()
        faults += include_faults(path, lines)
        faults += style_faults(path, lines, is_explained(path, sources))
        for part in BANNED_FOLDERS.intersection(path.parts):
            faults.append(f"{path}:1: a folder named {part} says nothing of what it holds")
    for fault in faults:
        print(fault)
    print(f"{len(sources)} files, {len(faults)} faults")
    return 1 if faults or not sources else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)))
