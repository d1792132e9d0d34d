"""P1: a model's bits are the same whether it trains alone or merged with others. Usage: p1_... RANKS"""
import json
import sys

from tutti_runs import JOB, Runs, expect_equal, fail, results

ranks = sys.argv[1]
with Runs() as runs:
    runs.make_data()
    job = runs.write_job()
    together = results(runs.train(job, ranks, "--set", "run.lanes=2"))
    if len(together) < 12:
        fail(f"expected at least 12 models, found {len(together)}")
    # Alone means alone in the job: the others' blocks are removed from the file.
    head, blocks = JOB.split("models:\n")
    for block in ["  - name:" + part for part in blocks.split("  - name:")[1:]]:
        alone_job = runs.write_job(head + "models:\n" + block, name="alone.yaml")
        alone = results(runs.train(alone_job, "1"))
        for model, files in alone.items():
            expect_equal({model: files}, together, f"{model} alone, against merged with {len(together) - 1} others on "
                                                   f"{ranks} ranks")
    print(json.dumps({"models": len(together)}))
