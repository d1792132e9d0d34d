"""The example as README runs it: its shards are made, its plan has no islands, its sweep trains, and its best model
reaches 97 % of the test digits. Usage: example.py RANKS"""
import shutil
import sys

from tutti_runs import ROOT, Runs, fail, program, summary

ranks = int(sys.argv[1])

with Runs() as runs:
    examples = runs.folder / "examples"
    shutil.copytree(ROOT / "examples", examples, ignore=shutil.ignore_patterns("*.h5"))
    runs.check([examples / "digits/make_shards", program()])
    plan = runs.check([program(), "plan", examples / "digits.yaml", "--ranks", ranks])
    if "no autograd islands" not in plan:
        fail(f"plan of the example: expected no islands, found\n{plan}")
    models = summary(runs.train(examples / "digits.yaml", ranks))["models"]
    best = max(model["test"]["accuracy"] for model in models)
    if len(models) != 16 or best < 0.97:
        fail(f"expected 16 models and a best test accuracy of 0.97 or more, found {len(models)} and {best}")
