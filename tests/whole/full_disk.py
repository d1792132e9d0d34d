"""A full disk does not end the training: only the final write fails, the last good checkpoint stays, and with room
again --resume gives the bits of an uninterrupted run. Usage: full_disk.py RANKS limit|tmpfs

limit: no file may grow beyond a size (any user). tmpfs: a small file system of its own is filled (root only)."""
import os
import resource
import subprocess
import sys

from fault_runs import Ending, job_text
from tutti_runs import Runs, expect_equal, fail, newest_step, rank_processes, results, summary, wait_for

SOME_FAILED = 3
LARGEST_FILE = 64 << 10  # enough for a small model's files, too little for the large one's
ranks, way = int(sys.argv[1]), sys.argv[2]
LARGE = f"""
  - name: large
    layers: [flatten, {{linear: 64}}, relu, {{linear: 10}}]
    optimizer: {{adam: {{lr: 0.01}}}}
    epochs: 60
    grains: 2
    ranks: {min(ranks, 2)}
    checkpoint: {{every_steps: 20}}
"""


def limit(out):
    for process in rank_processes(str(out)):
        resource.prlimit(process, resource.RLIMIT_FSIZE, (LARGEST_FILE, resource.RLIM_INFINITY))


def fill(out):
    with open(out / "filler", "wb", buffering=0) as filler:
        try:
            while filler.write(bytes(1 << 16)):
                pass
        except OSError:
            pass


def check(out, use_up):
    process = runs.start(runs.train_command(job, out, ranks))
    wait_for(lambda: newest_step(out / "models/large"), 30, "the first checkpoint")
    use_up(out)
    ending = Ending(process, sign="model large failed")
    ending.expect(way, SOME_FAILED, ["model large: the checkpoint of step", "training goes on", "model large failed",
                                     "make room and go on with --resume"], out)
    failed = sum(report["state"] == "failed" for report in summary(out)["models"]) if way == "limit" else 1
    if failed != 1:
        fail(f"{way}: expected only the large model to fail, found {failed}")
    step = int(newest_step(out / "models/large").name[5:])
    if step == 0 or step % 20 or step >= 660:
        fail(f"{way}: expected the last good checkpoint to stay, found step {step}")
    if (out / "models/large/final/weights.safetensors").exists():
        fail(f"{way}: expected no final weights of the model that failed")


with Runs() as runs:
    runs.make_data()
    job = runs.write_job(job_text(more=LARGE))
    reference = results(runs.train(job, 1))
    out = runs.new_out()
    out.mkdir()
    if way == "tmpfs":
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", out], check=True)
    try:
        check(out, fill if way == "tmpfs" else limit)
        (out / "filler").unlink(missing_ok=True)
        runs.train(job, ranks, "--resume", out=out)
        expect_equal(reference, results(out), "resumed with room again")
    finally:
        if way == "tmpfs":
            subprocess.run(["umount", out], check=True)
