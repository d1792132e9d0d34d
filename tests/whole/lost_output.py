"""A run whose standard output cannot be written trains on: a full disk, a closed stream, a pipe whose reader has gone
or pauses. Usage: lost_output.py RANKS"""
import os
import subprocess
import sys

from fault_runs import job_text
from tutti_runs import MPIRUN, TIME_FACTOR, Runs, expect_equal, fail, program, results, summary, wait_for

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


def full_pipe():
    """Both ends of a pipe that takes no further byte."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"\n" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    return reader, writer


def check_paused_reader():
    """One rank without mpirun, which would take the output and keep it."""
    what = "a reader who pauses"
    out = runs.new_out()
    reader, writer = full_pipe()
    process = subprocess.Popen([program(), "train", job, "--out", out, "--set", "run.progress=0.01"], cwd=runs.folder,
                               stdout=writer, stderr=subprocess.DEVNULL)
    os.close(writer)
    wait_for((out / "summary.json").exists, 60, f"{what}: the end of training")
    with os.fdopen(reader) as stream:
        output = stream.read().strip()
    code = process.wait(60 * TIME_FACTOR)
    if code != 0 or "models on 1 rank" not in output or "model  state" not in output:
        fail(f"{what}: expected exit code 0, the headline and the last table, found {code} and\n{output}")
    expect_equal(reference, results(out), what)


with Runs() as runs:
    runs.make_data()
    job = runs.write_job(job_text())
    reference = results(runs.train(job, ranks))
    for what, script in WAYS.items():
        check(what, script)
    if ranks == 1:
        check_paused_reader()
