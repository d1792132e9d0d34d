"""P4: a model that fails ends alone, with its own message; the others' bits do not change. Usage: p4_... RANKS"""
import sys

from fault_runs import on_rank
from tutti_runs import JOB, Runs, expect_equal, fail, newest_step, program, results, summary

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

# One row of its data is not a number: it falls to the second of two grains, in step 57, while the team next to it
# exchanges too.
BROKEN_ROW = 8 * 56 + 5
BROKEN = f"""
  - name: broken
    data: numbers
    layers: [{{linear: 8}}, {{batch_norm1d: {{}}}}, relu, {{linear: 1}}]
    loss: mse
    metrics: []
    batch: 8
    order: sequential
    optimizer: {{adam: {{lr: 0.01}}}}
    grains: 2
    ranks: {min(ranks, 2)}
"""

# One member of its team meets an exception outside the network's own arithmetic.
FAULTY = f"""
  - name: faulty
    layers: [flatten, {{linear: 16}}, relu, {{linear: 10}}]
    optimizer: {{adam: {{lr: 0.01}}}}
    checkpoint: {{every_steps: 1}}
    grains: 8
    ranks: {ranks}
"""


def break_a_row():
    """A model whose loss is not a number in one grain of a team, beside other teams."""
    rows = [[f"{(row * 7 + column) % 11 / 11}" for column in range(4)] for row in range(640)]
    rows[BROKEN_ROW][2] = "nan"
    (runs.folder / "numbers.csv").write_text("a,b,c,y\n" + "\n".join(",".join(row) for row in rows) + "\n")
    runs.check([program(), "shard", "csv", "--file", "numbers.csv", "--target-type", "float", "--out", "data/numbers",
                "--allow-nan"])
    data = "data:\n  numbers: {train: data/numbers-*.h5}\n"
    text = JOB.replace("data:\n", data, 1).replace("    grains: 4\n", f"    grains: 4\n    ranks: {min(ranks, 4)}\n")
    out = runs.train(runs.write_job(text + BROKEN, epochs=12, name="broken.yaml"), ranks, expect=3)
    expect_equal(alone, results(out), "beside a model with a broken row")
    report = failed_report(out, "broken")
    if report["reason"] != "non-finite loss at step 57":
        fail(f"expected `broken` to fail by a non-finite loss at step 57, found {report}")


def damage_the_twin():
    """Two equal networks, on their own: the first one's shard has a flipped bit."""
    healthy = (runs.folder / "data/train-000.h5").read_bytes()
    damaged = bytearray(healthy)
    damaged[len(damaged) // 2] ^= 4  # the images, which are most of the file
    (runs.folder / "data/damaged.h5").write_bytes(damaged)
    head = JOB.split("models:")[0].replace("data:\n", "data:\n  damaged: {train: data/damaged.h5}\n", 1)
    model = "  - {{name: {0}, data: {1}, layers: [flatten, {{linear: 4}}, relu, {{linear: 10}}], optimizer: {{sgd: {{lr: 0.1}}}}}}\n"
    good, bad = model.format("good", "digits"), model.format("bad", "damaged")
    reference = results(runs.train(runs.write_job(head + "models:\n" + good, name="good.yaml"), 1))
    out = runs.train(runs.write_job(head + "models:\n" + bad + good, name="twins.yaml"), ranks, expect=3)
    expect_equal(reference, results(out), "beside an equal network on damaged data")
    report = failed_report(out, "bad")
    if "damaged.h5" not in report["reason"] or "checksum" not in report["reason"]:
        fail(f"expected `bad` to name its shard and the checksum, found {report}")


def failed_report(out, name):
    report = next(model for model in summary(out)["models"] if model["name"] == name)
    if report["state"] != "failed":
        fail(f"expected `{name}` to fail, found {report}")
    return report


def throw_at(point, rank):
    """An exception at the 30th visit of a point: on one rank, or on all (None)."""
    job = runs.write_job(JOB + FAULTY, epochs=12, name="faulty.yaml")
    out = runs.new_out()
    command, fault = runs.train_command(job, out, ranks), f"{point}/faulty:30:throw"
    if rank is None:
        code, text = runs.run(command, {"TUTTI_FAULT": fault})
    else:
        code, text = runs.run(on_rank(rank, fault, command))
    if code != 3:
        fail(f"an exception at {point} on rank {rank}: expected exit code 3, found {code}\n{text}")
    expect_equal(alone, results(out), f"beside a model that throws at {point} on rank {rank}")
    report = failed_report(out, "faulty")
    if "TUTTI_FAULT" not in report["reason"] or report["step"] not in (29, 30):
        fail(f"expected `faulty` to fail by the exception at step 30, found {report}")
    step = newest_step(out / "models/faulty")
    if step is None or int(step.name[5:]) != 29:
        fail(f"expected the checkpoint of step 29, before the exception, found {step}")


with Runs() as runs:
    runs.make_data()
    alone = results(runs.train(runs.write_job(epochs=12), ranks))
    out = runs.train(runs.write_job(JOB + EXPLODING, epochs=12, name="exploding.yaml"), ranks, expect=3)
    expect_equal(alone, results(out), "beside a model that fails")
    report = failed_report(out, "exploding")
    if "non-finite" not in report["reason"] or report["step"] <= 50:
        fail(f"expected `exploding` to fail by a non-finite loss after step 50, found {report}")
    break_a_row()
    damage_the_twin()
    for rank in {0, ranks - 1}:
        throw_at("update", rank)
    throw_at("store", None)
