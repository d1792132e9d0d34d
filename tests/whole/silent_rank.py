"""A rank that falls silent is named within the deadline, and so are the ranks that wait when the whole job stands still;
the job ends with an exit code of its own.
Usage: silent_rank.py RANKS"""
import os
import signal
import sys
import time

from fault_runs import LEAVE_SECONDS, Ending, job_text, on_rank
from tutti_runs import Runs, fail, rank_processes, wait_for

INTERNAL = 70
DEADLINE = 3
ranks = int(sys.argv[1])


def rank_of(process):
    for word in open(f"/proc/{process}/environ", "rb").read().split(b"\0"):
        if word.startswith(b"OMPI_COMM_WORLD_RANK="):
            return int(word.split(b"=")[1])
    fail(f"process {process} has no rank")


def stop_rank(what, rank, ready, fragments):
    """Stops one rank once `ready(out)`, and expects the others to name it."""
    out = runs.new_out()
    process = runs.start(runs.train_command(job, out, ranks, "--set", f"run.deadline={DEADLINE}"))
    wait_for(lambda: ready(out), 30, f"{what}: the moment to stop a rank")
    victim = next(victim for victim in rank_processes(str(out)) if rank_of(victim) == rank)
    os.kill(victim, signal.SIGSTOP)
    stopped = time.monotonic()
    ending = Ending(process)
    seconds = time.monotonic() - stopped
    ending.expect(what, INTERNAL, [f"rank {rank} (host {os.uname().nodename}, process {victim})", f"{DEADLINE} s",
                                   "run.deadline", "--resume", *fragments], out)
    if seconds > DEADLINE + LEAVE_SECONDS:
        fail(f"{what}: expected the end within {DEADLINE + LEAVE_SECONDS} s of the stop, found {seconds:.1f} s")


def trains(out):
    logs = list(out.glob("models/*/metrics.jsonl"))
    return len(logs) == 2 and all(log.stat().st_size for log in logs)


def starts(out):
    return (out / "models").is_dir()


def lose_a_message(rank):
    """One rank never sends its part of a sum; every rank gives signs of life all the while."""
    what = f"a message of rank {rank} lost"
    job = runs.write_job(job_text(first=f"grains: 8\n    ranks: {ranks}\n    epochs: 100000"), name="team.yaml")
    out = runs.new_out()
    process = runs.start(on_rank(rank, "'sum lost/good:50'",
                                 runs.train_command(job, out, ranks, "--set", f"run.deadline={DEADLINE}")))
    waiting = f"waiting for rank {rank} in the sum of model good, step "
    Ending(process).expect(what, INTERNAL, [f"stood still for {DEADLINE} s", waiting, "run.deadline", "--resume"], out)


with Runs() as runs:
    runs.make_data()
    job = runs.write_job(job_text(first="epochs: 100000"))
    for rank in (0, ranks - 1):
        stop_rank(f"rank {rank} stopped in mid-training", rank, trains, ["has been silent", "Last word: "])
    lose_a_message(ranks - 1)
    stop_rank("last rank stopped while starting", ranks - 1, starts, [])
