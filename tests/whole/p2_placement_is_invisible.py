"""P2: the same bits on any number of ranks and lanes; a team exchanges while others compute. Usage: p2_... RANKS"""
import json
import sys
from collections import defaultdict

from tutti_runs import JOB, Runs, expect_equal, fail, results, summary

ranks = int(sys.argv[1])
# Grained models are spread over as many ranks as they have grains for, so that teams of every size exchange.
SPREAD = JOB.replace("    grains: 4\n", f"    grains: 4\n    ranks: {min(ranks, 4)}\n").replace(
    "    sweep: {grains: [1, 4, 8]}\n", f"    sweep: {{grains: [1, 4, 8]}}\n    ranks: {ranks}\n")


def overlapping(one, other):
    return one["ts"] < other["ts"] + other["dur"] and other["ts"] < one["ts"] + one["dur"]


def check_trace(path):
    events = json.loads(path.read_text())
    visits = defaultdict(list)
    for event in events:
        if event["cat"] == "visit":
            visits[(event["pid"], event["tid"])].append(event)
    interleaved = 0
    for lane in visits.values():
        lane.sort(key=lambda event: event["ts"])
        names = [event["name"] for event in lane]
        # A model left in mid-training and taken up again later, with others between.
        interleaved = max(interleaved, len({name for name in names if names.count(name) > 1}))
    if interleaved < 3:
        fail(f"expected at least 3 models that interleave on a lane, found {interleaved}")
    if ranks > 1:
        hidden = sum(1 for exchange in events if exchange["cat"] == "exchange" for visit in events
                     if visit["cat"] == "visit" and visit["pid"] == exchange["pid"]
                     and visit["name"] != exchange["name"] and overlapping(exchange, visit))
        if hidden == 0:
            fail("expected exchanges of a team while other models computed, found none")


with Runs() as runs:
    runs.make_data()
    plain = runs.write_job()
    spread = runs.write_job(SPREAD, name="spread.yaml")
    reference = results(runs.train(plain, 1))
    for lanes in (1, 2):
        trace = runs.folder / f"trace-{lanes}.json"
        out = runs.train(spread, ranks, "--set", f"run.lanes={lanes}", "--set", "run.visit=2",
                         "--trace", trace)
        expect_equal(reference, results(out), f"{ranks} ranks of {lanes} lanes against 1 rank of 1 lane")
        check_trace(trace)
        sent = sum(rank["sent_messages"] for rank in summary(out)["ranks"])
        if ranks > 1 and sent < 100:
            fail(f"expected teams that exchange, found {sent} messages in all")
