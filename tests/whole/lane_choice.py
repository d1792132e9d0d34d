"""Lanes follow the CPU mask; a mask that leaves cores idle, and more lanes than cores, are warned about.
Usage: lane_choice.py RANKS"""
import os
import sys

from fault_runs import job_text
from tutti_runs import MPIRUN, Runs, fail, program, summary

ranks = int(sys.argv[1])
host = os.uname().nodename
ALL = sorted(os.sched_getaffinity(0))
TEXT = job_text().replace("lanes: 1", "lanes: LANES")


def check(what, lanes, cpus, expected_lanes, warning):
    """Trains on these CPUs; every rank must have so many lanes, and this must be said, once, or nothing at all."""
    job = runs.write_job(TEXT.replace("LANES", str(lanes)))
    out = runs.new_out()
    mask = ["taskset", "-c", ",".join(map(str, cpus))]
    output = runs.check([MPIRUN, ranks, *mask, program(), "train", job, "--out", out])
    found = [rank["lanes"] for rank in summary(out)["ranks"]]
    if found != [expected_lanes] * ranks:
        fail(f"{what}: expected {expected_lanes} lanes on each of {ranks} ranks, found {found}")
    said = output.count(f"host {host}: ")
    if said != (1 if warning else 0) or warning not in output:
        fail(f"{what}: expected the warning '{warning}' once and no other, found\n{output}")


with Runs() as runs:
    runs.make_data()
    if len(ALL) > 1:
        check("one core of several", "auto", ALL[:1], 1,
              f"may use 1 of its {os.cpu_count()} cores, the others stay idle")
    if len(ALL) == os.cpu_count() and len(ALL) >= ranks:
        check("all cores", "auto", ALL, max(1, len(ALL) // ranks), "")
        check("more lanes than cores", len(ALL) + 1, ALL, len(ALL) + 1,
              f"share {len(ALL)} cores; fewer lanes would be as fast")
