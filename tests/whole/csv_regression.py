"""Regression from a CSV table: the targets are a column of numbers, the outputs lists of one; models of every loss for
numbers learn it, and are evaluated and predict. Usage: csv_regression.py RANKS"""
import json
import random
import sys

from tutti_runs import Runs, fail, program

ranks = int(sys.argv[1])
JOB = """
run: {out: OUT, lanes: 1}
data: {prices: {train: data/prices-*.h5, held_out: 0.25}}
defaults: {layers: [{linear: 1}], optimizer: {adam: {lr: 0.1}}, epochs: 20, metrics: [mae]}
models:
  - {name: mse, loss: mse}
  - {name: l1, loss: l1, grains: 2}
  - {name: huber, loss: huber}
"""
BINARY_JOB = JOB.replace("prices", "signs").split("models:")[0] + """models:
  - {name: one-weight, loss: {bce_with_logits: {positive_weights: [2]}}}
"""


def make_shards(runs, name, target):
    values = random.Random(1)
    rows = [(values.uniform(-1, 1), values.uniform(-1, 1)) for _ in range(400)]
    lines = [f"{a:.6f},{b:.6f},{target(a, b):.6f}" for a, b in rows]
    (runs.folder / f"{name}.csv").write_text("a,b,y\n" + "\n".join(lines) + "\n")
    runs.check([program(), "shard", "csv", "--file", f"{name}.csv", "--target-type", "float", "--out", f"data/{name}"])


def expect_learning(runs, job, factor):
    out = runs.train(runs.write_job(job), ranks)
    for folder in sorted((out / "models").iterdir()):
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        losses = [line["validation"]["loss"] for line in lines if "validation" in line]
        if len(losses) != 20 or not losses[-1] < factor * losses[0]:
            fail(f"{folder.name}: expected 20 validation losses that fall below {factor} of the first, found {losses}")
    return out


with Runs() as runs:
    make_shards(runs, "prices", lambda a, b: 3 * a - 2 * b + 1)
    out = expect_learning(runs, JOB, 0.1)
    runs.check([program(), "eval", out])
    runs.check([program(), "predict", out, "--model", "mse", "--data", "data/prices-*.h5", "--out", "prices-found.csv"])
    make_shards(runs, "signs", lambda a, b: a > b)
    expect_learning(runs, BINARY_JOB, 0.5)
