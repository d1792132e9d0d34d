"""P1: a model's bits are the same whether it trains alone or merged with others. Usage: p1_... RANKS"""
import json
import sys

from tutti_runs import JOB, Runs, expect_equal, fail, results

ranks = sys.argv[1]
# Equal networks, of which the first has the fewest rows to evaluate: what they need together is the second's.
TWINS = """
run: {out: OUT, lanes: 1}
data:
  few: {train: data/train-*.h5, test: data/test-001.h5}
  many: {train: data/train-*.h5, test: data/train-*.h5}
defaults:
  layers: [{conv2d: {out: 8, kernel: 3}}, relu, {conv2d: {out: 8, kernel: 3}}, relu, flatten, {linear: 10}]
  loss: cross_entropy
  batch: 2
  steps: 20
  optimizer: {sgd: {lr: 0.01}}
models:
  - {name: few, data: few}
  - {name: many, data: many}
"""

with Runs() as runs:
    runs.make_data()
    job = runs.write_job()
    together = results(runs.train(job, ranks, "--set", "run.lanes=2"))
    if len(together) < 12:
        fail(f"expected at least 12 models, found {len(together)}")
    # Alone means alone in the job: the others' blocks are removed from the file.
    head, blocks = JOB.split("models:\n")
    for block in ["  - name:" + part for part in blocks.split("  - name:")[1:]]:
        alone_job = runs.write_job(head + "models:\n" + block, name="alone.yaml")
        alone = results(runs.train(alone_job, "1"))
        for model, files in alone.items():
            expect_equal({model: files}, together, f"{model} alone, against merged with {len(together) - 1} others on "
                                                   f"{ranks} ranks")
    job = runs.write_job(TWINS, name="twins.yaml")
    merged = results(runs.train(job, "1"))
    expect_equal(merged, results(runs.train(job, ranks)), f"equal networks with unlike data on {ranks} ranks")
    print(json.dumps({"models": len(together)}))
