"""Runs of the whole program, for the tests in this folder: data, jobs, processes, and comparison of results."""
import gzip
import hashlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits"
MPIRUN = ROOT / "tests/mpirun"
TIME_FACTOR = int(os.environ.get("TUTTI_TIME_FACTOR", "1"))  # sanitizers are slower
ARCHIVE = ROOT / "tests/data/pt2/digits.pt2"  # exported by PyTorch

# Eighteen unlike models: every kind of state there is (Adam's moments, running statistics, dropout masks, plateau and
# early-stopping counters), one to eight grains, full and short last batches.
JOB = """
run: {out: OUT, lanes: 1}
data:
  digits: {train: data/train-*.h5, test: data/test-*.h5, held_out: 0.1, seed: 3}
defaults: {data: digits, loss: cross_entropy, batch: 32, epochs: EPOCHS, metrics: [accuracy, macro_f1], log_every: 1}
models:
  - name: mlp-adam
    layers: [flatten, {linear: 16}, relu, {linear: 10}]
    optimizer: {adam: {lr: 0.01}}
  - name: mlp-sgd-${momentum}
    sweep: {momentum: [0.0, 0.9]}
    layers: [flatten, {linear: 24}, tanh, {linear: 10}]
    optimizer: {sgd: {lr: 0.05, momentum: "${momentum}"}}
  - name: mlp-rmsprop
    layers: [flatten, {linear: 20}, gelu, {layer_norm: {}}, {linear: 10}]
    optimizer: {rmsprop: {lr: 0.001, momentum: 0.5, centered: true}}
    clip: {norm: 1.0}
  - name: mlp-adagrad
    layers: [flatten, {linear: 12}, silu, {linear: 10}]
    optimizer: {adagrad: {lr: 0.02}}
    accumulate: 3
  - name: dropout-${grains}
    sweep: {grains: [1, 2, 4]}
    layers: [flatten, {linear: 32}, relu, {dropout: 0.3}, {linear: 10}]
    optimizer: {adamw: {lr: 0.003}}
    schedule: {cosine: {warmup_steps: 5}}
  - name: bn-${grains}
    sweep: {grains: [1, 4, 8]}
    layers: [{conv2d: {out: 4, kernel: 3, stride: 2}}, {batch_norm2d: {}}, relu, {max_pool2d: 2}, flatten, {dropout: 0.1}, {linear: 10}]
    optimizer: {adam: {lr: 0.005, amsgrad: true}}
  - name: residual
    layers: [{conv2d: {out: 4, kernel: 3, padding: 1, stride: 4}}, {residual: [{conv2d: {out: 4, kernel: 3, padding: 1}}, {batch_norm2d: {}}, relu]}, flatten, {linear: 10}]
    optimizer: {sgd: {lr: 0.05, momentum: 0.9, nesterov: true}}
    schedule: {plateau: {patience: 0, factor: 0.5}}
    grains: 2
  - name: short-batches
    layers: [flatten, {linear: 16}, relu, {linear: 10}]
    optimizer: {adam: {lr: 0.01, weight_decay: 0.01}}
    batch: 50
    grains: 4
  - name: twin-of-zoo
    layers: [flatten, {linear: 8}, relu, {linear: 10}]
    optimizer: {adam: {lr: 0.01}}
  - name: zoo
    layers: [{mlp: {widths: [8], classes: 10}}]
    optimizer: {adam: {lr: 0.01}}
  - name: early
    layers: [flatten, {linear: 8}, relu, {linear: 10}]
    optimizer: {sgd: {lr: 0.1}}
    early_stopping: {metric: loss, patience: 1, min_delta: 10.0}
  - name: exported-${grains}
    sweep: {grains: [1, 4]}
    graph: DIGITS_PT2
    output: linear_2
    optimizer: {adam: {lr: 0.01}}
  - name: double
    layers: [flatten, {linear: 8}, relu, {dropout: 0.5}, {linear: 10}]
    optimizer: {adam: {lr: 0.01}}
    precision: float64
    grains: 2
  - name: island
    layers: [flatten, {linear: 16}, relu, {dropout: 0.2}, {linear: 10}]
    optimizer: {adam: {lr: 0.01}}
    engine: island
"""


def program():
    """The program under test: TUTTI, or build/bin/tutti."""
    return os.environ.get("TUTTI", str(ROOT / "build/bin/tutti"))


def read_idx(name):
    raw = gzip.open(DIGITS / name).read()
    dimensions = raw[3]
    sizes = struct.unpack(f">{dimensions}I", raw[4:4 + 4 * dimensions])
    return sizes, raw[4 + 4 * dimensions:]


def write_idx(path, sizes, payload):
    path.write_bytes(bytes([0, 0, 8, len(sizes)]) + struct.pack(f">{len(sizes)}I", *sizes) + payload)


class Runs:
    """A folder for one test's runs, removed at the end."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="tutti-"))
        self.out_count = 0

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None or not os.environ.get("TUTTI_KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)

    def make_data(self, train_rows=330, test_rows=100):
        """Shards of the first digits."""
        (self.folder / "data").mkdir(exist_ok=True)
        for kind, rows, per_shard in (("train", train_rows, 128), ("test", test_rows, 64)):
            for what in ("images-idx3", "labels-idx1"):
                sizes, payload = read_idx(f"{kind}-{what}-ubyte.gz")
                row = len(payload) // sizes[0]
                write_idx(self.folder / f"{kind}-{what}", (rows, *sizes[1:]), payload[:rows * row])
            self.check([program(), "shard", "idx", "--images", f"{kind}-images-idx3", "--labels", f"{kind}-labels-idx1",
                        "--out", f"data/{kind}", "--rows-per-shard", str(per_shard)])

    def write_job(self, text=JOB, epochs=3, name="job.yaml"):
        path = self.folder / name
        path.write_text(text.replace("EPOCHS", str(epochs)).replace("DIGITS_PT2", str(ARCHIVE)))
        return path

    def new_out(self):
        self.out_count += 1
        return self.folder / f"out{self.out_count}"

    def start(self, command, environment=None, **options):
        return subprocess.Popen([str(part) for part in command], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})},
                                start_new_session=True, **options)

    def run(self, command, environment=None, timeout=240):
        """Exit code and output. A run that does not end in time is killed, and fails the test."""
        process = self.start(command, environment)
        timeout *= TIME_FACTOR
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            fail(f"hung for {timeout} s: {command}\n{output}")
        return process.returncode, output

    def check(self, command, **options):
        code, output = self.run(command, **options)
        if code != 0:
            fail(f"expected exit code 0, found {code}: {command}\n{output}")
        return output

    def train_command(self, job, out, ranks, *options):
        return [MPIRUN, ranks, program(), "train", job, "--out", out, *options]

    def train(self, job, ranks, *options, out=None, expect=0, environment=None, timeout=240):
        """Trains; returns the output folder."""
        out = out or self.new_out()
        code, output = self.run(self.train_command(job, out, ranks, *options), environment, timeout)
        if code != expect:
            fail(f"expected exit code {expect}, found {code}\n{output}")
        return out


def fail(message):
    print(f"FAILED: {message}", file=sys.stderr)
    sys.exit(1)


def newest_step(folder):
    steps = [int(path.name[5:]) for path in folder.glob("step_*") if path.name[5:].isdigit()]
    return folder / f"step_{max(steps)}" if steps else None


def results(out):
    """{model: {file: hash}} of everything that a promise covers: weights, optimizer state, metrics."""
    found = {}
    for folder in sorted((Path(out) / "models").iterdir()):
        step = newest_step(folder)
        files = [step / "weights.safetensors", step / "state.safetensors", folder / "metrics.jsonl",
                 folder / "final/weights.safetensors"] if step else []
        found[folder.name] = {"step": step.name if step else None} | {
            path.name if path.parent.name != "final" else "final": hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files if path.exists()}
    return found


def expect_equal(expected, found, what):
    for model, files in expected.items():
        if model not in found:
            fail(f"{what}: model {model} is absent")
        for name, value in files.items():
            if found[model].get(name) != value:
                fail(f"{what}: model {model}, {name}: expected {value}, found {found[model].get(name)}")


def summary(out):
    return json.loads((Path(out) / "summary.json").read_text())


def rank_processes(pattern):
    """Process ids whose command line begins with the program and holds `pattern`."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words and words[0].decode() == program() and any(pattern.encode() in word for word in words):
            found.append(int(entry.name))
    return sorted(found)


def wait_for(condition, seconds, what):
    seconds *= TIME_FACTOR
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            fail(f"waited {seconds} s for {what}")
        time.sleep(0.02)
