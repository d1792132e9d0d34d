"""P4: a model that fails ends alone, with its own message; the others' bits do not change. Usage: p4_... RANKS"""
import sys

from tutti_runs import JOB, Runs, expect_equal, fail, results, summary

ranks = int(sys.argv[1])
# The rate makes the loss overflow after some 60 steps, in a team of two where there are two ranks.
EXPLODING = f"""
  - name: exploding
    layers: [flatten, {{linear: 16}}, {{linear: 10}}]
    loss: cross_entropy
    optimizer: {{sgd: {{lr: 0.05}}}}
    schedule: {{exponential: {{gamma: 1.06}}}}
    epochs: 40
    grains: 2
    ranks: {min(ranks, 2)}
"""

with Runs() as runs:
    runs.make_data()
    alone = results(runs.train(runs.write_job(epochs=12), ranks))
    out = runs.train(runs.write_job(JOB + EXPLODING, epochs=12, name="exploding.yaml"), ranks, expect=3)
    expect_equal(alone, {name: files for name, files in results(out).items()}, "beside a model that fails")
    report = next(model for model in summary(out)["models"] if model["name"] == "exploding")
    if report["state"] != "failed" or "non-finite" not in report.get("reason", "") or report["step"] <= 50:
        fail(f"expected `exploding` to fail by a non-finite loss after step 50, found {report}")
