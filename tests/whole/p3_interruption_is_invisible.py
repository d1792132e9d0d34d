"""P3: killed at any instant and resumed, on the same or another number of ranks and lanes: the same bits.
Usage: p3_... RANKS [TRIALS] [SEED]"""
import os
import random
import signal
import sys
import time

from tutti_runs import Runs, expect_equal, fail, newest_step, program, rank_processes, results, summary

ranks = int(sys.argv[1])
trials = int(sys.argv[2]) if len(sys.argv) > 2 else 3
random.seed(int(sys.argv[3]) if len(sys.argv) > 3 else ranks)
FAULTS = ["checkpoint.written", "checkpoint.synced", "checkpoint.renamed"]
CADENCE = ["--set", "defaults.checkpoint.every_steps=7", "--set", "run.visit=5"]


def steps(out):
    found = {}
    for folder in (out / "models").glob("*"):
        step = newest_step(folder)
        found[folder.name] = int(step.name[5:]) if step else 0
    return found


def kill_at_fault(out, point, count):
    process = runs.start(runs.train_command(job, out, ranks, *CADENCE), {"TUTTI_FAULT": f"{point}:{count}"})
    output, _ = process.communicate(timeout=120)
    if process.returncode == 0:
        fail(f"expected the run to be killed at {point}, it ended well\n{output}")


def kill_a_rank(out, after_seconds):
    """Kills a random rank once training has begun; False when the run had ended before."""
    process = runs.start(runs.train_command(job, out, ranks, *CADENCE))
    while not list((out / "models").glob("*/metrics.jsonl")) and process.poll() is None:
        time.sleep(0.01)
    time.sleep(after_seconds)
    victims = rank_processes(str(out))
    if victims:
        os.kill(random.choice(victims), signal.SIGKILL)
    process.communicate(timeout=120)
    return process.returncode != 0


DESCRIPTIONS = ("model.yaml", "model.py")  # every start writes them anew


def files_of(out, skipped=()):
    """{path: (time of the last change, bytes)} of all that training wrote of the models that are not skipped."""
    files = [path for path in (out / "models").rglob("*") if path.is_file() and path.name not in DESCRIPTIONS]
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files
            if path.relative_to(out / "models").parts[0] not in skipped}


def reports(out):
    return sorted(summary(out)["models"], key=lambda report: report["name"])


def tracked_bytes(out):
    return sum(rank["memory_bytes"]["tracked"] for rank in summary(out)["ranks"])


def check_finished_models_rest(out):
    """Resumed once all models have finished, and once one of them has lost its final weights."""
    told, tracked = reports(out), tracked_bytes(out)
    unfinished = "dropout-4"
    for again in {ranks, 2}:
        for touched in ((), (unfinished,)):
            if touched:
                (out / "models" / unfinished / "final/weights.safetensors").unlink()
            before = files_of(out, touched)
            runs.train(job, again, *CADENCE, "--resume", out=out)
            where = f"finished models, resumed on {again} ranks, {touched} to be finished"
            after = files_of(out, touched)
            changed = [str(path) for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
            if changed:
                fail(f"{where}: expected these files untouched: {changed}")
            if reports(out) != told:
                fail(f"{where}: expected the reports {told}, found {reports(out)}")
            if not tracked_bytes(out) < tracked / 4:
                fail(f"{where}: expected much less than the {tracked} bytes of the whole training to be tracked, found "
                     f"{tracked_bytes(out)}")
    expect_equal(reference, results(out), "finished models, resumed")


with Runs() as runs:
    runs.make_data()
    job = runs.write_job(epochs=12)
    reference = results(runs.train(job, 1, *CADENCE))
    lost, middle = 0, 0
    for trial in range(trials):
        out = runs.new_out()
        if trial % 3 == 2:
            kill_a_rank(out, random.uniform(0.0, 0.6))
        else:
            kill_at_fault(out, FAULTS[(trial + ranks) % 3], random.randint(5, 60))
        done = steps(out)
        lost += any(step < int(reference[name]["step"][5:]) for name, step in done.items())
        middle += any(step % 10 for step in done.values())
        again = random.choice([count for count in (1, 2, 3, 4) if count != ranks])
        lanes = random.choice([1, 2])
        runs.train(job, again, *CADENCE, "--resume", "--set", f"run.lanes={lanes}", out=out)
        expect_equal(reference, results(out), f"trial {trial}: killed on {ranks} ranks, resumed on {again} of {lanes} "
                                              f"lanes from steps {done}")
    if lost < trials - 1 or middle == 0:
        fail(f"expected trials that lose steps and resume in mid-epoch, found {lost} and {middle} of {trials}")
    out = runs.train(job, ranks, *CADENCE)
    check_finished_models_rest(out)
