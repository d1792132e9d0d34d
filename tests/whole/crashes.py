"""A model whose work crashes the process: the run before goes on with --resume, and after its second crash the model is
paused and the others train on, to the same bits as without it. Usage: crashes.py RANKS"""
import re
import sys

from fault_runs import job_text
from tutti_runs import Runs, expect_equal, fail, results, summary

SOME_FAILED = 3
ranks = int(sys.argv[1])
SUSPECT = f"""  - name: suspect
    layers: [flatten, {{linear: 8}}, relu, {{linear: 10}}]
    optimizer: {{sgd: {{lr: 0.1}}}}
    epochs: 50
    grains: 4
    ranks: {ranks}
"""


def states(out):
    return {report["name"]: report["state"] for report in summary(out)["models"]}


def crash(out, *options):
    code, text = runs.run(runs.train_command(job, out, ranks, *options), {"TUTTI_FAULT": "update/suspect:20:crash"})
    if code in (0, SOME_FAILED):
        fail(f"expected the process to crash, found exit code {code}\n{text}")


with Runs() as runs:
    runs.make_data()
    reference = results(runs.train(runs.write_job(job_text(), name="without.yaml"), 1))
    job = runs.write_job(job_text(SUSPECT))
    out = runs.new_out()
    log = out / "crashes.txt"
    crash(out)
    if not re.fullmatch(r"(suspect signal 11 run \S+\n)+", log.read_text()):
        fail(f"expected one crash of `suspect`, found {log.read_text()!r}")
    crash(out, "--resume")
    code, text = runs.run(runs.train_command(job, out, ranks, "--resume"))
    if code != SOME_FAILED or "model suspect is paused: the process crashed 2 times" not in text or str(log) not in text:
        fail(f"expected exit code {SOME_FAILED} and word of the paused model, found {code}\n{text}")
    if states(out) != {"good": "finished", "other": "finished", "suspect": "paused"}:
        fail(f"expected the suspect alone to be paused, found {states(out)}")
    expect_equal(reference, results(out), "beside a paused model")

    log.write_text(log.read_text().splitlines(keepends=True)[0])
    runs.train(job, ranks, "--resume", out=out)
    if states(out)["suspect"] != "finished":
        fail(f"expected the suspect to be tried again, found {states(out)}")
