"""A signal makes every running model write a checkpoint at a step boundary and the job leave with the code that asks
for a requeue; --resume on other ranks then gives the bits of an uninterrupted run. Usage: signals.py RANKS"""
import os
import signal
import sys

from fault_runs import Ending
from tutti_runs import JOB, Runs, expect_equal, fail, newest_step, rank_processes, results, summary, wait_for

REQUEUE = 75
MPIRUN_ENDED = 1  # what mpirun returns once it was sent SIGTERM itself, whatever its ranks return
RUNNING_STATES = {"checkpointed", "finished"}
ranks = int(sys.argv[1])
# mpirun lets this time pass before it passes SIGTERM on, and once more before it kills what is left. A job that writes
# checkpoints may need longer than the default, 1 s; and must train for longer, to be stopped at all.
PATIENCE = {"OMPI_MCA_odls_base_sigkill_timeout": "3"}


def first_rank(out, process):
    return rank_processes(str(out))[0]


def launcher(out, process):
    return process.pid


def interrupt(job, number, whom, code=REQUEUE, environment=None):
    """Signals the run in mid-training; every model must lie there at a step boundary afterwards."""
    what = f"{signal.Signals(number).name} to {whom.__name__} on {ranks} ranks"
    out = runs.new_out()
    process = runs.start(runs.train_command(job, out, ranks), environment)
    wait_for(lambda: sum(log.stat().st_size > 0 for log in out.glob("models/*/metrics.jsonl")) >= 3, 30,
             f"{what}: training")
    os.kill(whom(out, process), number)
    Ending(process).expect(what, code, [], out)
    reports = summary(out)["models"]
    states = {report["state"] for report in reports}
    if not states <= RUNNING_STATES or "checkpointed" not in states:
        fail(f"{what}: expected models that are checkpointed or finished, found {states}")
    for report in reports:
        step = newest_step(out / "models" / report["name"])
        if step is None or int(step.name[5:]) != report["step"]:
            fail(f"{what}: expected a checkpoint of {report['name']} at step {report['step']}, found {step}")
    again = ranks % 3 + 1
    runs.train(job, again, "--resume", out=out)
    expect_equal(references[job], results(out), f"{what}, resumed on {again} ranks")


with Runs() as runs:
    runs.make_data()
    job = runs.write_job(epochs=40)
    long_job = runs.write_job(JOB.split("  - name: dropout")[0], epochs=1000, name="long.yaml")
    references = {path: results(runs.train(path, min(ranks, 2))) for path in (job, long_job)}
    interrupt(job, signal.SIGUSR1, launcher)
    interrupt(job, signal.SIGTERM, first_rank)
    interrupt(long_job, signal.SIGTERM, launcher, MPIRUN_ENDED, PATIENCE)
    interrupt(job, signal.SIGINT, first_rank)
