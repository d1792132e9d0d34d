"""eval, predict, plan and calibrate, on a job that was trained on some ranks. Usage: commands.py RANKS"""
import csv
import json
import re
import sys

from tutti_runs import JOB, MPIRUN, Runs, fail, program, read_idx, summary

ranks = int(sys.argv[1])
PARTS = ("validation", "test")
# A quarter of 10^9 bytes of parameters in each of four layers of 8,192 x 7,630.
LARGE = """
run: {out: large}
data: {digits: {train: data/train-*.h5, test: data/test-*.h5}}
models:
  - name: large
    data: digits
    layers: [flatten, {linear: 8192}, relu, {linear: 7630}, relu, {linear: 8192}, relu, {linear: 7630}, relu, {linear: 8192}, {linear: 10}]
    loss: cross_entropy
    optimizer: {adam: {lr: 0.001}}
    epochs: 1
"""
SMALL = LARGE.replace("8192", "8").replace("7630", "8")


def expect(condition, what):
    if not condition:
        fail(what)


def expect_near(found, expected, tolerance, what):
    expect(abs(found - expected) <= tolerance * abs(expected), f"{what}: expected {expected}, found {found}")


def last_evaluation(out, model):
    lines = [json.loads(line) for line in (out / "models" / model / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if "test" in line][-1]


def json_of(runs, *command):
    return json.loads(runs.check([program(), *command, "--json"]))


def check_eval(runs, out):
    results = {result["name"]: result for result in json_of(runs, "eval", out)}
    names = {model["name"] for model in summary(out)["models"]}
    expect(set(results) == names, f"eval: expected the models {sorted(names)}, found {sorted(results)}")
    for name, result in results.items():
        trained = last_evaluation(out, name)
        for part in PARTS:
            expect(result[part] == trained[part], f"eval of {name}, {part}: expected what training's last evaluation "
                                                  f"found, {trained[part]}, found {result[part]}")
    some = json_of(runs, "eval", out, "--model", "bn-*", "--data", "data/test-*.h5")
    expect([result["name"] for result in some] == ["bn-1", "bn-4", "bn-8"], f"eval --model 'bn-*': found {some}")
    for result in some:
        expect(result["data"] == results[result["name"]]["test"],
               f"eval --data with the test shards: expected {results[result['name']]['test']}, found {result['data']}")
    return results


def check_eval_refusals(runs, out):
    for arguments, words in ((["--model", "absent"], ["--model", "absent", "mlp-adam"]),
                             (["--weights", "step_999999"], ["expected models with weights"]),
                             (["--data", "data/absent-*.h5"], ["absent-*.h5"])):
        code, output = runs.run([program(), "eval", out, *arguments])
        expect(code == 2, f"eval {arguments}: expected exit code 2, found {code}\n{output}")
        for word in words:
            expect(word in output, f"eval {arguments}: expected a message with `{word}`, found\n{output}")
    code, output = runs.run([program(), "eval", "data"])
    expect(code == 2 and "job.yaml" in output, f"eval of another folder: expected code 2, found {code}\n{output}")


def labels(row_count):
    return list(read_idx("test-labels-idx1-ubyte.gz")[1][:row_count])


def check_predict(runs, out, evaluated):
    for model in ("mlp-adam", "bn-4", "double", "island"):
        file = runs.folder / f"{model}.csv"
        runs.check([program(), "predict", out, "--model", model, "--data", "data/test-*.h5", "--out", file])
        rows = list(csv.DictReader(file.open()))
        truth = labels(len(rows))
        expect([int(row["row"]) for row in rows] == list(range(100)), f"predict: expected rows 0 to 99, found {rows}")
        for row in rows:
            values = [float(row[f"y{i}"]) for i in range(10)]
            expect(int(row["class"]) == values.index(max(values)), f"predict: expected the greatest output's class: {row}")
        accuracy = sum(int(row["class"]) == label for row, label in zip(rows, truth)) / len(rows)
        expect_near(accuracy, evaluated[model]["test"]["accuracy"], 1e-12, f"accuracy of {model}'s predictions")
    check_npy(runs, out)
    code, output = runs.run([program(), "predict", out, "--model", "bn-4", "--data", "data/test-*.h5", "--out",
                             "absent/bn-4.csv"])
    expect(code == 2 and "--out" in output and "absent" in output,
           f"predict into a folder that is absent: expected code 2, found {code}\n{output}")


def check_npy(runs, out):
    file = runs.folder / "double.npy"
    runs.check([program(), "predict", out, "--model", "double", "--data", "data/test-*.h5", "--out", file])
    raw = file.read_bytes()
    header = raw[10:10 + int.from_bytes(raw[8:10], "little")].decode()
    expect(raw[:8] == b"\x93NUMPY\x01\x00" and "'<f8'" in header and "(100, 10,)" in header and (10 + len(header)) % 64 == 0,
           f"predict: expected a NumPy array of 100 x 10 doubles, found the header {raw[:8]}{header}")
    values = memoryview(raw[10 + len(header):]).cast("d")
    with (runs.folder / "double.csv").open() as table:
        written = [float(row[f"y{i}"]) for row in csv.DictReader(table) for i in range(10)]
    expect(list(values) == written, "predict: expected the same values in .npy and .csv")


def check_saved_job(runs, job, out):
    expect((out / "job.yaml").read_bytes() == job.read_bytes(), "expected a copy of the job file in job.yaml")
    for name in ("mlp-sgd-0.9", "bn-4"):
        text = (out / "models" / name / "model.yaml").read_text()
        expect(f"name: {name}\n" in text and "labels:\n" in text, f"expected name and labels in model.yaml, found\n{text}")
    expect("class Model" in (out / "models/bn-4/model.py").read_text(), "expected a network in model.py")


def check_plan(runs, job, out):
    plan = json_of(runs, "plan", job, "--ranks", ranks, "--lanes", "1", "--memory", "1GiB")
    islands = {model["name"]: model["islands"] for model in plan["models"] if model["islands"]}
    expect(list(islands) == ["island"] and all(name.startswith("aten::") for name in islands["island"]),
           f"plan: expected the operators of the model `island` as islands, found {islands}")
    expect(len(plan["ranks"]) == ranks and plan["makespan_seconds"] >= plan["lower_bound_seconds"] > 0, f"{plan}")
    check_disk(plan, out)
    measured = json_of(runs, "plan", job, "--measure")
    expect(measured["estimates"] == "trial steps", f"plan --measure: found {measured['estimates']}")
    text = runs.check([program(), "plan", job])
    expect("estimates" in text and "autograd islands" in text and "aten::" in text, f"plan: found\n{text}")
    code, text = runs.run([program(), "plan", job, "--memory", "1KiB"])
    expect(code == 2 and re.search(r"model mlp-adam needs \d+ bytes", text) and "1024 left" in text,
           f"plan --memory 1KiB: expected code 2 and the numbers, found {code}\n{text}")


def check_disk(plan, out):
    """What a run leaves, of its checkpoint and its final weights, is within the plan for two checkpoints."""
    for model in plan["models"]:
        folder = out / "models" / model["name"]
        left = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
        expect(left / 4 < model["disk_bytes"] < 4 * left + 50_000,
               f"plan of {model['name']}: expected about {left} bytes on disk, found {model['disk_bytes']}")


def team_job(runs):
    """A model that all ranks share."""
    return runs.write_job(JOB.split("models:\n")[0] + f"""models:
  - name: team
    layers: [flatten, {{linear: 64}}, relu, {{linear: 10}}]
    optimizer: {{sgd: {{lr: 0.01}}}}
    grains: 4
    ranks: {ranks}
""", epochs=3, name="team.yaml")


def check_exchanged_bytes(runs):
    """A team's bytes per step, against what the ranks sent."""
    if ranks == 1:
        return
    job = team_job(runs)
    model = json_of(runs, "plan", job, "--ranks", ranks)["models"][0]
    sent = sum(rank["sent_bytes"] for rank in summary(runs.train(job, ranks))["ranks"])
    expect_near(sent, model["steps"] * model["exchanged_bytes_per_step"], 0.1, "bytes sent by a team")


def peak_bytes(runs, job):
    """The peak resident memory of a plan."""
    script = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)")
    return int(runs.check([sys.executable, "-c", script, program(), "plan", job, "--memory", "64GiB"]))


def check_plan_allocates_nothing(runs):
    large = runs.write_job(LARGE, name="large.yaml")
    parameters = json_of(runs, "plan", large, "--memory", "64GiB")["models"][0]["parameters"]
    expect(parameters * 4 > 1e9, f"expected a model of 1 GB, found {parameters} parameters")
    more = peak_bytes(runs, large) - peak_bytes(runs, runs.write_job(SMALL, name="small.yaml"))
    expect(more < 64e6, f"plan of a model of 1 GB: expected at most 64 MB above a small one's, found {more} bytes")
    expect(not (runs.folder / "large").exists(), "plan: expected no output folder, found one")


def check_mixed_job(runs):
    """Models with and without test data: eval leaves out what it cannot evaluate; the summary counts all ranks' bytes."""
    job = runs.write_job("""
data:
  tested: {train: data/train-*.h5, test: data/test-*.h5}
  untested: {train: data/train-*.h5}
defaults: {loss: cross_entropy, epochs: 1, layers: [flatten, {linear: 10}], optimizer: {sgd: {lr: 0.1}}}
models:
  - {name: with-test, data: tested, metrics: [accuracy]}
  - {name: without-test, data: untested}
""", name="mixed.yaml")
    runs.check([program(), "plan", job])  # which needs no run.out
    out = runs.train(job, ranks)
    output = runs.check([program(), "eval", out])
    expect("model without-test: expected validation or test data" in output and "with-test " in output,
           f"eval of a mixed job: expected one model and a line on the other, found\n{output}")
    code, output = runs.run([program(), "eval", out, "--model", "without-test"])
    expect(code == 2, f"eval of a model without test data alone: expected exit code 2, found {code}\n{output}")
    figures = summary(out)
    for name, total in figures["data_bytes_read"].items():
        parts = [rank["data_bytes_read"][name] for rank in figures["ranks"]]
        expect(total == sum(parts) > 0, f"bytes read of {name}: expected the sum of {parts}, found {total}")


def check_seconds(runs):
    """The summary tells where a rank's time went; only a team's ranks exchange."""
    for rank in summary(runs.train(team_job(runs), ranks))["ranks"]:
        seconds = rank["seconds"]
        expect(all(value >= 0 for value in seconds.values()) and seconds["computing"] > 0, f"seconds: found {seconds}")
        expect_near(seconds["computing"] + seconds["waiting"], rank["lanes"] * seconds["training"], 0.05,
                    "seconds of the lanes")
        expect(seconds["exchanging"] <= seconds["training"] and (seconds["exchanging"] > 0) == (ranks > 1),
               f"seconds exchanging on {ranks} ranks: found {seconds}")


def check_calibrate(runs, job):
    file = runs.folder / "machine.json"
    printed = json.loads(runs.check([MPIRUN, ranks, program(), "calibrate", "--json", "--out", file]))
    expect(printed == json.loads(file.read_text()), "calibrate: expected the same JSON printed and written")
    expect(set(printed["machine"]) == {"flops_per_second", "bytes_per_second", "instruction_seconds"}, f"{printed}")
    expect(set(printed["link"]) == {"latency_seconds", "seconds_per_byte"}, f"{printed}")
    expect(len(printed["ranks"]) == ranks and len(printed["links"]) == ranks * (ranks - 1) // 2, f"{printed}")
    expect(len(printed["sums"]) == (3 if ranks > 1 else 0), f"{printed}")
    numbers = [value for part in (printed["machine"], *printed["ranks"], *printed["sums"]) for value in part.values()
               if isinstance(value, float)]
    expect(all(value > 0 for value in numbers), f"calibrate: expected numbers above zero, found {printed}")
    code, text = runs.run([MPIRUN, ranks, program(), "calibrate", "--out", "nowhere/machine.json"])
    expect(code == 2 and "nowhere" in text, f"calibrate --out into no folder: expected code 2, found {code}\n{text}")
    plan = json_of(runs, "plan", job, "--ranks", ranks, "--calibration", file)
    expect(plan["makespan_seconds"] > 0, f"plan --calibration: found {plan}")
    code, text = runs.run([program(), "plan", job, "--calibration", job])
    expect(code == 2 and "tutti calibrate --out" in text, f"plan with another file: expected code 2, found {code}\n{text}")


def check_full_output(runs, job, out):
    """What a command cannot print is a fault, whichever the command."""
    commands = [["version"], ["version", "--help"], ["--help"], ["job-file"], ["plan", job], ["show", out],
                ["eval", out, "--model", "mlp-adam"],
                ["predict", out, "--model", "mlp-adam", "--data", "data/test-*.h5", "--out", "full.csv"],
                ["shard", "idx", "--images", "test-images-idx3", "--labels", "test-labels-idx1", "--out", "full/test"]]
    if ranks == 1:
        commands.append(["calibrate"])
    for command in commands:
        code, text = runs.run(["bash", "-c", 'exec "$@" > /dev/full', "bash", program(), *command])
        expect(code == 2 and "tutti: standard output: expected to write" in text and "No space left on device" in text,
               f"{command} to a full disk: expected code 2 and the reason, found {code}\n{text}")


with Runs() as runs:
    runs.make_data()
    job = runs.write_job()
    out = runs.train(job, ranks, "--set", "defaults.evaluation_batch=64")
    # The copy of the job must do: the file itself is gone, and one key came from the command line.
    check_saved_job(runs, job, out)
    expect(runs.check([program(), "--version"]) == runs.check([program(), "version"]), "expected --version to be version")
    kept = job.rename(runs.folder / "kept.yaml")
    evaluated = check_eval(runs, out)
    check_eval_refusals(runs, out)
    check_predict(runs, out, evaluated)
    check_plan(runs, kept, out)
    check_full_output(runs, kept, out)
    check_exchanged_bytes(runs)
    check_plan_allocates_nothing(runs)
    check_mixed_job(runs)
    check_seconds(runs)
    check_calibrate(runs, kept)
