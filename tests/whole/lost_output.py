"""A run whose standard output cannot be written trains on: a full disk, a closed stream, a pipe whose reader has gone.
Usage: lost_output.py RANKS"""
import sys

from fault_runs import job_text
from tutti_runs import MPIRUN, Runs, expect_equal, fail, program, results, summary

ranks = int(sys.argv[1])
WAYS = {"a full disk": 'exec "$@" > /dev/full', "closed": 'exec "$@" >&-',
        "all three streams closed": 'exec "$@" <&- >&- 2>&-',
        "a pipe without a reader": 'exec "$@" > >(exec <&-; sleep 1)'}


def check(what, script):
    out = runs.new_out()
    command = [program(), "train", job, "--out", out, "--set", "run.progress=0.01"]
    code, output = runs.run([MPIRUN, ranks, "bash", "-c", script, "bash", *command])
    if code != 0:
        fail(f"{what}: expected exit code 0, found {code}\n{output}")
    expect_equal(reference, results(out), what)
    states = {model["state"] for model in summary(out)["models"]}
    if states != {"finished"}:
        fail(f"{what}: expected all models to finish, found {states}")


with Runs() as runs:
    runs.make_data()
    job = runs.write_job(job_text())
    reference = results(runs.train(job, ranks))
    for what, script in WAYS.items():
        check(what, script)
