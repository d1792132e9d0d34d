"""P5: memory stays within what was planned, and the plan is close to what is used. Usage: memory.py RANKS"""
import json
import math
import struct
import sys

from fault_runs import Ending, job_text
from tutti_runs import Runs, fail, newest_step, program, summary

BAD_INPUT = 2
SLACK = 32 << 20
ranks = sys.argv[1]

# Twelve models, unlike in layers, optimizer, batch, grains and precision, whose state and activations take tens of MB.
JOB = """
run: {out: OUT, lanes: LANES, measure_memory: true, visit: 20}
data:
  digits: {train: data/train-*.h5, test: data/test-*.h5, held_out: 0.1}
defaults: {data: digits, loss: cross_entropy, batch: 256, epochs: 2, metrics: [accuracy]}
models:
  - name: wide-${optimizer}
    sweep: {optimizer: [sgd, adam, adamw, adagrad]}
    layers: [flatten, {linear: 512}, relu, {linear: 512}, gelu, {linear: 10}]
    optimizer: {"${optimizer}": {lr: 0.001}}
  - name: rmsprop
    layers: [flatten, {linear: 1024}, silu, {layer_norm: {}}, {dropout: 0.2}, {linear: 10}]
    optimizer: {rmsprop: {lr: 0.001, momentum: 0.9, centered: true}}
    grains: 4
    ranks: 2
  - name: accumulating
    layers: [flatten, {linear: 1024}, tanh, {linear: 10}]
    optimizer: {adam: {lr: 0.001, amsgrad: true}}
    accumulate: 2
    grains: 2
    ranks: 2
  - name: double
    layers: [flatten, {linear: 512}, relu, {linear: 10}]
    optimizer: {adam: {lr: 0.001}}
    precision: float64
  - name: conv-${grains}
    sweep: {grains: [1, 4]}
    ranks: 2
    layers: [{conv2d: {out: 16, kernel: 3, padding: 1}}, {batch_norm2d: {}}, relu, {max_pool2d: 2},
             {conv2d: {out: 32, kernel: 3, padding: 1}}, relu, {adaptive_avg_pool2d: 4}, flatten, {linear: 10}]
    optimizer: {adam: {lr: 0.001}}
  - name: residual
    layers: [{conv2d: {out: 8, kernel: 3, padding: 1, stride: 2}},
             {residual: [{conv2d: {out: 8, kernel: 3, padding: 1}}, {batch_norm2d: {}}, relu,
                         {conv2d: {out: 8, kernel: 3, padding: 1}}]}, relu, flatten, {linear: 10}]
    optimizer: {sgd: {lr: 0.01, momentum: 0.9}}
    grains: 2
  - name: island
    layers: [flatten, {linear: 1024}, relu, {linear: 10}]
    optimizer: {adam: {lr: 0.001}}
    engine: island
  - name: lenet
    layers: [{conv2d: {out: 8, kernel: 5, padding: 2}}, sigmoid, {avg_pool2d: 2},
             {conv2d: {out: 16, kernel: 5}}, sigmoid, {avg_pool2d: 2}, flatten,
             {linear: 120}, {linear: 84}, {linear: 10}]
    optimizer: {adam: {lr: 0.001}}
"""


# One large model: a second copy of what comes in from a file would be more than the slack.
LARGE = """
run: {out: OUT, lanes: 1, measure_memory: true}
data:
  digits: {train: data/train-*.h5, test: data/test-*.h5}
models:
  - name: large
    data: digits
    loss: cross_entropy
    layers: [flatten, {linear: WIDTH}, relu, {linear: 10}]
    batch: 8
    evaluation_batch: 8
    epochs: 1
    steps: 2
    ranks: 1
    SETTINGS
"""


def large_job(name, width, settings):
    return runs.write_job(LARGE.replace("WIDTH", str(width)).replace("SETTINGS", settings), name=name)


def write_float64_weights(path, width):
    """First weights for the large model, all zeros, of twice its bytes."""
    header, end = {}, 0
    for name, shape in (("1.weight", [width, 784]), ("1.bias", [width]), ("3.weight", [10, width]), ("3.bias", [10])):
        begin, end = end, end + 8 * math.prod(shape)
        header[name] = {"dtype": "F64", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(file.tell() + end)


# Data that is streamed, of more bytes than the slack; the models are small.
STREAMED_ROWS = 12 * 4096
STREAMED_WIDTH = 2048
STREAMED = """
run: {out: OUT, lanes: 1, measure_memory: true}
data:
  wide: {train: data/wide-*.h5, access: stream, window: WINDOW, normalise: false}
models:
  - name: model-${seed}
    sweep: {seed: [1, 2]}
    seed: "${seed}"
    layers: [flatten, {linear: 2}]
    loss: cross_entropy
    optimizer: sgd
    batch: 64
    order: ORDER
    grains: 2
    ranks: RANKS
"""


def write_bytes_as_npy(name, rows, width):
    """An array of zeros of one byte each."""
    shape = f"({rows}, {width})" if width else f"({rows},)"
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(runs.folder / f"{name}.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.truncate(file.tell() + rows * max(width, 1))


def check(out, what):
    for rank in summary(out)["ranks"]:
        memory = rank["memory_bytes"]
        where = f"{what}, rank {rank['rank']} of {ranks}: {json.dumps(memory)}"
        print(where)
        if memory["tracked"] > memory["planned"]:
            fail(f"expected at most the planned bytes to be tracked; {where}")
        if memory["measured"] > 1.10 * memory["tracked"] + SLACK:
            fail(f"expected to measure at most 1.10 x the tracked bytes + 32 MB; {where}")
        if memory["predicted"] > 1.25 * memory["measured"]:
            fail(f"expected to predict at most 1.25 x the measured bytes; {where}")


with Runs() as runs:
    runs.make_data(train_rows=1400, test_rows=500)
    for lanes in (1, 2):
        check(runs.train(runs.write_job(JOB.replace("LANES", str(lanes))), ranks), f"{lanes} lanes")

    job = large_job("resumed.yaml", 12800, "optimizer: adam\n    checkpoint: {every_steps: 1}")
    out = runs.new_out()
    code, output = runs.run(runs.train_command(job, out, ranks), {"TUTTI_FAULT": "checkpoint.renamed:1"})
    if code == 0 or newest_step(out / "models/large") is None:
        fail(f"expected the run to be killed after its first checkpoint, found exit code {code}\n{output}")
    check(runs.train(job, ranks, "--resume", out=out), "resumed")

    write_float64_weights(runs.folder / "first.safetensors", 25600)
    job = large_job("init.yaml", 25600, "optimizer: {sgd: {lr: 0.01}}\n    init: first.safetensors")
    check(runs.train(job, ranks), "first weights from a file")

    write_bytes_as_npy("x", STREAMED_ROWS, STREAMED_WIDTH)
    write_bytes_as_npy("y", STREAMED_ROWS, 0)
    runs.check([program(), "shard", "npy", "--x", "x.npy", "--y", "y.npy", "--out", "data/wide"])
    streamed_bytes = STREAMED_ROWS * (STREAMED_WIDTH + 1)
    for window, least in (("256MiB", streamed_bytes), ("80MiB", 80 << 20)):
        order = "shuffled" if window == "256MiB" else "sequential"
        job = runs.write_job(STREAMED.replace("WINDOW", window).replace("ORDER", order).replace("RANKS", ranks))
        plan = json.loads(runs.check([program(), "plan", job, "--json", "--lanes", "1"]))
        if not least < plan["ranks"][0]["bytes"] < 1.25 * least + SLACK:
            fail(f"expected the plan to hold {least} bytes of streamed data and little more: {plan['ranks']}")
        out = runs.train(job, ranks)
        check(out, f"streamed, window {window}")
        if summary(out)["ranks"][0]["memory_bytes"]["tracked"] < least:
            fail(f"expected to track at least the {least} streamed bytes: {summary(out)['ranks']}")

    job = runs.write_job(job_text(more="""
  - name: huge
    layers: [flatten, {linear: 4000}, {linear: 10}]
    optimizer: {adam: {lr: 0.01}}
"""))
    out = runs.new_out()
    ending = Ending(runs.start(runs.train_command(job, out, ranks, "--set", "run.memory=10MB")))
    ending.expect("models larger than the memory", BAD_INPUT, ["huge", "bytes", "raise `memory`"], out)
