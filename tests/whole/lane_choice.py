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


def check(what, lanes, cpus, expected_lanes, *warnings):
    """Trains on these CPUs; every rank must have so many lanes, and these warnings must be said, once each, and no
    other."""
    job = runs.write_job(TEXT.replace("LANES", str(lanes)))
    out = runs.new_out()
    mask = ["taskset", "-c", ",".join(map(str, cpus))]
    output = runs.check([MPIRUN, ranks, *mask, program(), "train", job, "--out", out])
    found = [rank["lanes"] for rank in summary(out)["ranks"]]
    if found != [expected_lanes] * ranks:
        fail(f"{what}: expected {expected_lanes} lanes on each of {ranks} ranks, found {found}")
    if output.count(f"host {host}: ") != len(warnings) or not all(warning in output for warning in warnings):
        fail(f"{what}: expected the warnings {warnings}, once each and no other, found\n{output}")


def too_many(lane_count, core_count):
    return f"with {lane_count} lanes in all share {core_count} core{'s' * (core_count > 1)}; fewer ranks or lanes"


with Runs() as runs:
    runs.make_data()
    if len(ALL) > 1:
        check("one core of several", "auto", ALL[:1], 1,
              f"may use 1 of its {os.cpu_count()} cores, the others stay idle", *[too_many(ranks, 1)][:ranks - 1])
    if len(ALL) == os.cpu_count() and len(ALL) >= ranks:
        check("all cores", "auto", ALL, max(1, len(ALL) // ranks))
        check("more lanes than cores", len(ALL) + 1, ALL, len(ALL) + 1, too_many(ranks * (len(ALL) + 1), len(ALL)))
