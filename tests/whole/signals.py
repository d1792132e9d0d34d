"""A signal makes every running model write a checkpoint at a step boundary and the job leave with the code that asks
for a requeue; --resume on other ranks then gives the bits of an uninterrupted run. Usage: signals.py RANKS"""
import contextlib
import os
import signal
import sys

from fault_runs import Ending
from tutti_runs import JOB, TIME_FACTOR, Runs, expect_equal, fail, newest_step, rank_processes, results, summary, wait_for

REQUEUE = 75
MPIRUN_ENDED = 1  # what mpirun returns once it was sent SIGTERM itself, whatever its ranks return
RUNNING_STATES = {"checkpointed", "finished"}
LONGER_RUNS = 4
ranks = int(sys.argv[1])
# mpirun lets this time pass before it passes SIGTERM on, and once more before it kills what is left. A job that writes
# checkpoints may need longer than the default, 1 s; and must train for longer, to be stopped at all.
PATIENCE = {"OMPI_MCA_odls_base_sigkill_timeout": str(3 * TIME_FACTOR)}


def first_rank(out, process):
    return rank_processes(str(out))[:1]


def launcher(out, process):
    return [process.pid]


def signalled(job, number, whom, environment, what):
    """Output folder and ending of a run that was sent the signal in mid-training."""
    out = runs.new_out()
    process = runs.start(runs.train_command(job, out, ranks), environment)
    wait_for(lambda: sum(log.stat().st_size > 0 for log in out.glob("models/*/metrics.jsonl")) >= 3, 30,
             f"{what}: training")
    for target in whom(out, process):
        with contextlib.suppress(ProcessLookupError):  # it has just finished
            os.kill(target, number)
    ending = Ending(process)
    if not (out / "summary.json").exists():
        fail(f"{what}: expected a summary, found none\n{ending.output}")
    return out, ending


def interrupt(text, number, whom, code=REQUEUE, environment=None, epochs=40):
    """Signals the run in mid-training; every model must lie there at a step boundary afterwards. A machine so fast that
    all had finished when the signal came trains for longer."""
    what = f"{signal.Signals(number).name} to {whom.__name__} on {ranks} ranks"
    for _ in range(LONGER_RUNS):
        job = runs.write_job(text, epochs, f"{epochs}-epochs-{len(text)}.yaml")
        out, ending = signalled(job, number, whom, environment, what)
        states = {report["state"] for report in summary(out)["models"]}
        if states != {"finished"}:
            break
        epochs *= 4
    ending.expect(what, code, [], out)
    if not states <= RUNNING_STATES or "checkpointed" not in states:
        fail(f"{what}: expected models that are checkpointed or finished, found {states}")
    for report in summary(out)["models"]:
        step = newest_step(out / "models" / report["name"])
        if step is None or int(step.name[5:]) != report["step"]:
            fail(f"{what}: expected a checkpoint of {report['name']} at step {report['step']}, found {step}")
    again = ranks % 3 + 1
    runs.train(job, again, "--resume", out=out)
    if job not in references:
        references[job] = results(runs.train(job, min(ranks, 2)))
    expect_equal(references[job], results(out), f"{what}, resumed on {again} ranks")


with Runs() as runs:
    runs.make_data()
    references = {}
    interrupt(JOB, signal.SIGUSR1, launcher)
    interrupt(JOB, signal.SIGTERM, first_rank)
    interrupt(JOB.split("  - name: dropout")[0], signal.SIGTERM, launcher, MPIRUN_ENDED, PATIENCE, epochs=1000)
    interrupt(JOB, signal.SIGINT, first_rank)
