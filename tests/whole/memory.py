"""P5: memory stays within what was planned, and the plan is close to what is used. Usage: memory.py RANKS"""
import json
import sys

from fault_runs import Ending, job_text
from tutti_runs import Runs, fail, summary

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


def check(lanes):
    out = runs.train(runs.write_job(JOB.replace("LANES", str(lanes))), ranks)
    for rank in summary(out)["ranks"]:
        memory = rank["memory_bytes"]
        where = f"rank {rank['rank']} of {ranks}, {lanes} lanes: {json.dumps(memory)}"
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
        check(lanes)
    job = runs.write_job(job_text(more="""
  - name: huge
    layers: [flatten, {linear: 4000}, {linear: 10}]
    optimizer: {adam: {lr: 0.01}}
"""))
    out = runs.new_out()
    ending = Ending(runs.start(runs.train_command(job, out, ranks, "--set", "run.memory=10MB")))
    ending.expect("models larger than the memory", BAD_INPUT, ["huge", "bytes", "raise `memory`"], out)
