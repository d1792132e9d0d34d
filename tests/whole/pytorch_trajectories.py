"""Whole trainings equal PyTorch's: every layer kind, loss, optimizer, schedule and clip, in float32 and float64.

Usage: pytorch_trajectories.py RANKS [OPTION of tutti train...]

One job trains the cases of tests/data/runs (made by tests/pytorch/make_run_trajectories.py), by instructions, by
autograd islands and, one case per network, from the archive that PyTorch exported. Each series (loss, gradient norm, learning rate, evaluation results) and each tensor after the last
step is compared with PyTorch's float64 run; the distance, |a - b| / |b|, must not exceed ten times PyTorch's own
rounding effect on it.
"""
import array
import json
import math
import shutil
import struct
import sys
from pathlib import Path

from tutti_runs import ROOT, Runs, fail, program

DATA = ROOT / "tests/data/runs"
FACTOR = 10
EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52}
ENGINES = ("instructions", "island")
LEARNING_RATE_TOLERANCE = 1e-12  # PyTorch computes some schedules by recurrence, Tutti in closed form
STEPS = 20


def read_safetensors(path):
    """{name: flat list of numbers}."""
    raw = path.read_bytes()
    (header_bytes,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + header_bytes])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        kind = {"F64": "d", "F32": "f", "I64": "q"}[entry["dtype"]]
        tensors[name] = array.array(kind, raw[8 + header_bytes + begin:8 + header_bytes + end]).tolist()
    return tensors


def expected_cases():
    """{case: (series and tensors, spreads by precision)}."""
    tensors = read_safetensors(DATA / "expected.safetensors")
    cases = {}
    for name, case in json.loads((DATA / "expected.json").read_text()).items():
        own = {key.removeprefix(name + "/"): value for key, value in tensors.items() if key.startswith(name + "/")}
        cases[name] = (case["series"] | own, case["spread"])
    return cases


def trained(folder):
    """The same of a trained model."""
    found = {"loss": [], "gradient_norm": [], "lr": [], "train_loss": []}
    for line in map(json.loads, (folder / "metrics.jsonl").read_text().splitlines()):
        if line["event"] == "step":
            for key in ("loss", "gradient_norm", "lr"):
                found[key].append(line[key])
        elif line["event"] == "epoch":
            found["train_loss"].append(line["train_loss"])
            for key, value in line["test"].items():
                found.setdefault(f"test.{key}", []).append(value)
    return found | read_safetensors(folder / "final/weights.safetensors")


def distance(found, expected):
    if len(found) != len(expected):
        return math.inf
    size = math.sqrt(sum(value * value for value in expected))
    difference = math.sqrt(sum((a - b) * (a - b) for a, b in zip(found, expected)))
    return difference / (size if size > 0 else 1)


def compare(expected, spreads, found, precision):
    """(distance, tolerance, what) of the series or tensor that comes nearest to its tolerance."""
    if expected.keys() != found.keys():
        fail(f"expected {sorted(expected)}, found {sorted(found)}")
    worst = (-1.0, 0.0, 1.0, "")
    for what, values in expected.items():
        tolerance = LEARNING_RATE_TOLERANCE if what == "lr" else FACTOR * max(spreads[what], EPSILON[precision])
        away = distance(found[what], values)
        worst = max(worst, (away / tolerance, away, tolerance, what))
    return worst[1:]


def prepare(runs):
    """The job and its data in the test's folder."""
    shutil.copytree(DATA, runs.folder, dirs_exist_ok=True)
    for file in DATA.glob("*.npz"):
        for part in ("train", "test"):
            runs.check([program(), "shard", "npz", "--file", file, "--x", f"x_{part}", "--y", f"y_{part}", "--out",
                        f"shards/{file.stem}-{part}"])
    return runs.folder / "job.yaml"


def engines_of(name):
    return (*ENGINES, "exported") if name.startswith("layer-") else ENGINES


def differing(name, case, models):
    """Prints a line for each training of a case; returns how many are not PyTorch's."""
    expected, spreads = case
    if len(expected["loss"]) != STEPS:
        fail(f"{name}: expected {STEPS} steps, found {len(expected['loss'])}")
    count = 0
    for precision in EPSILON:
        for engine in engines_of(name):
            found = trained(models / f"{name}-{precision}-{engine}")
            away, tolerance, what = compare(expected, spreads[precision], found, precision)
            differs = not away <= tolerance
            count += differs
            print(f"{name:33}  {precision}  {engine:12}  {away:8.1e}  {tolerance:9.1e}  {what}{'  DIFFERS' * differs}")
    return count


def main(ranks, *options):
    cases = expected_cases()
    with Runs() as runs:
        out = runs.train(prepare(runs).name, ranks, *options)  # a job of the current folder
        print(f"{'case':33}  precision  {'engine':10}  distance  tolerance  what is farthest, for its tolerance")
        faults = sum(differing(name, case, out / "models") for name, case in cases.items())
    count = sum(len(EPSILON) * len(engines_of(name)) for name in cases)
    if faults:
        fail(f"{faults} of {count} trainings differ from PyTorch's by more than ten times its rounding effect")
    print(f"{count} trainings equal PyTorch's")


if __name__ == "__main__":
    main(*sys.argv[1:])
