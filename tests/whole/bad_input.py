"""Bad input ends the job on all ranks, at once, with a message that says what was expected, what was found, where, and
what to do; a fault that shows only while training ends its own model. Usage: bad_input.py RANKS"""
import os
import signal
import stat
import sys

from fault_runs import Ending, job_text
from tutti_runs import Runs, expect_equal, fail, program, rank_processes, results, summary, wait_for

BAD_INPUT, SOME_FAILED, INTERNAL = 2, 3, 70
ranks = int(sys.argv[1])
team = min(ranks, 2)


def model(name, layers="[flatten, {linear: 10}]", rest=""):
    return f"  - name: {name}\n    layers: {layers}\n    optimizer: {{sgd: {{lr: 0.1}}}}\n{rest}"


def write_table(path, labels):
    rows = [f"{i * 0.5},{i % 7},{label}" for i, label in enumerate(labels)]
    path.write_text("width,height,label\n" + "\n".join(rows) + "\n")


def make_shards(runs, name, labels, target_type="auto"):
    write_table(runs.folder / f"{name}.csv", labels)
    runs.check([program(), "shard", "csv", "--file", f"{name}.csv", "--target-type", target_type, "--out",
                f"data/{name}", "--rows-per-shard", "32"])


def damaged_copy(runs, name, change):
    """A copy of the training shards, the second of which is changed."""
    folder = runs.folder / name
    folder.mkdir()
    for shard in (runs.folder / "data").glob("train-*.h5"):
        content = shard.read_bytes()
        (folder / shard.name).write_bytes(change(content) if shard.name == "train-001.h5" else content)


def refused(what, text, fragments, *options, out=None):
    job = runs.write_job(text, name="bad.yaml")
    out = out or runs.new_out()
    existed = out.exists()
    ending = Ending(runs.start(runs.train_command(job, out, ranks, *options)))
    ending.expect(what, BAD_INPUT, ["tutti: ", *fragments], out)
    if not existed and list(out.glob("models/*/step_*")):
        fail(f"{what}: expected that nothing was trained, found checkpoints")


def refused_before_reading(what, job, fragments):
    out = runs.new_out()
    Ending(runs.start(runs.train_command(job, out, ranks))).expect(what, BAD_INPUT, ["tutti: ", *fragments], out)


def check_job_files():
    line = job_text().splitlines().index("    ") + 1  # where the first model's own keys stand
    refused("unknown key", job_text(first="epocs: 3"),
            [f"bad.yaml:{line}", "models.0", "unknown key `epocs`", "did you mean `epochs`?"])
    refused("two models of one name", job_text(more=model("good")), ["bad.yaml:", "good", "name"])
    refused("wrong shape between layers",
            job_text(more=model("narrow", "[flatten, {linear: 32}, {conv2d: {out: 4, kernel: 3}}, {linear: 10}]")),
            ["bad.yaml:", "layers.2 conv2d", "expected an input of 3 dimensions", "found [32] from layers.1 linear"])
    missing = runs.folder / "absent.yaml"
    refused_before_reading("job file that is not there", missing, ["absent.yaml", "cannot open the job file"])
    (runs.folder / "empty.yaml").write_text("")
    refused_before_reading("empty job file", runs.folder / "empty.yaml", ["empty.yaml", "empty"])
    (runs.folder / "folder.yaml").mkdir()
    refused_before_reading("job file that is a folder", runs.folder / "folder.yaml", ["folder.yaml", "folder"])
    os.mkfifo(runs.folder / "pipe")
    refused_before_reading("job file that is a pipe", runs.folder / "pipe", ["expected a job file, found a pipe"])


def check_data():
    refused("missing shard", job_text(data="  gone: {train: data/gone-*.h5}"),
            ["bad.yaml:", "data/gone-*.h5", "no such shard", "tutti shard"])
    refused("shard that is a pipe", job_text(data="  pipe: {train: pipe}"),
            ["bad.yaml:", "expected a regular file, found a pipe"])
    refused("first weights that are a pipe", job_text(first="init: pipe"),
            ["bad.yaml:", "expected a safetensors file, found a pipe"])
    damaged_copy(runs, "cut", lambda content: content[:len(content) // 2])
    refused("truncated shard", job_text(data="  cut: {train: cut/train-*.h5}", more=model("cut", rest="    data: cut")),
            ["bad.yaml:", "cut/train-001.h5", "expected"])
    make_shards(runs, "measures", [i * 0.25 for i in range(64)], "float")
    refused("float target of cross_entropy",
            job_text(data="  measures: {train: data/measures-*.h5}",
                     more=model("classes", "[{linear: 3}]", "    data: measures")),
            ["bad.yaml:", "cross_entropy expects an integer target", "float", "mse"])


def train_beside(what, data, more, fragments):
    """The model of `more` fails, the others finish with the bits they have without it."""
    out = runs.new_out()
    job = runs.write_job(job_text(data=data, more=more), name="failing.yaml")
    ending = Ending(runs.start(runs.train_command(job, out, ranks)), sign="failed:")
    ending.expect(what, SOME_FAILED, fragments, out)
    states = {report["name"]: report for report in summary(out)["models"]}
    if states["failing"]["state"] != "failed" or states["good"]["state"] != "finished":
        fail(f"{what}: expected only `failing` to fail, found {states}")
    for fragment in fragments:
        if fragment not in states["failing"]["reason"]:
            fail(f"{what}: expected the summary to say '{fragment}', found {states['failing']}")
    expect_equal(reference, results(out), what)


def check_rows():
    # A label below 0 leaves the number of classes open, so that the fault shows only where the row is read: in the
    # first batch, which the trial step before the training has met, or in a later one.
    make_shards(runs, "labels", [i % 3 for i in range(50)] + [-1] + [i % 3 for i in range(13)])
    for batch in (64, 16):
        train_beside(f"label out of range, batches of {batch}", "  labels: {train: data/labels-*.h5}",
                     model("failing", "[{linear: 3}]", f"    data: labels\n    order: sequential\n    batch: {batch}\n"
                                                       f"    grains: {2 if batch == 16 else 1}\n    ranks: {team}\n"),
                     ["labels-001.h5", "row 18", "expected a value in [0, 3), found -1"])

    def flip_pixel(content):
        middle = len(content) // 2
        return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1:]

    damaged_copy(runs, "damaged", flip_pixel)
    train_beside("damaged shard", "  damaged: {train: damaged/train-*.h5}",
                 model("failing", rest=f"    data: damaged\n    order: sequential\n    grains: 2\n    ranks: {team}\n"),
                 ["damaged/train-001.h5", "rows [0, 128)", "checksum"])


def check_output_folder():
    out = runs.train(runs.write_job(job_text()), ranks)
    refused("output that exists", job_text(), [str(out), "--resume", "--out"], out=out)
    job = runs.write_job(job_text(first="batch: 16"), name="changed.yaml")
    ending = Ending(runs.start(runs.train_command(job, out, ranks, "--resume")))
    ending.expect("resume with a changed setting", BAD_INPUT, ["model good", "batch", "restore"], out)
    (out / "job.json").write_text('{"models": ')
    damage = ["job.json: expected the record of a job that training wrote", "damaged", "restore"]
    refused("resume with a damaged record", job_text(), damage, "--resume", out=out)
    Ending(runs.start([program(), "eval", out])).expect("eval with a damaged record", BAD_INPUT, damage)


def check_trace():
    text = job_text()
    refused("trace over the job file", text, ["run.trace", "found the job file", "--trace"], "--trace",
            runs.folder / "bad.yaml")
    if (runs.folder / "bad.yaml").read_text() != text:
        fail("trace over the job file: expected the job file as it was, found another")
    refused("trace over a shard", text, ["run.trace", "a file of something else", "data/train-000.h5"], "--trace",
            "data/train-000.h5")


def check_folder_in_use():
    out = runs.new_out()
    job = runs.write_job(job_text(first="epochs: 40"), name="long.yaml")
    first = runs.start(runs.train_command(job, out, ranks))
    wait_for(lambda: list(out.glob("models/*/metrics.jsonl")), 20, "the first run to train")
    holders = rank_processes(str(out))
    for process in holders:  # it must not end before the second run has met it
        os.kill(process, signal.SIGSTOP)
    ending = Ending(runs.start(runs.train_command(job, out, 1)))
    ending.expect("folder in use", BAD_INPUT, [str(out), "in use by process", os.uname().nodename, "--out"])
    if not any(f"process {process} " in ending.output for process in holders):
        fail(f"folder in use: expected a process of {holders} to be named, found\n{ending.output}")
    for process in holders:
        os.kill(process, signal.SIGKILL)
    first.communicate(timeout=20)
    runs.train(job, ranks, "--resume", out=out)


def check_lost_folder():
    """A folder that is removed under a run ends it: what it writes would be lost."""
    out = runs.new_out()
    job = runs.write_job(job_text(first="epochs: 100000"), name="endless.yaml")
    process = runs.start(runs.train_command(job, out, ranks))
    wait_for(lambda: list(out.glob("models/*/metrics.jsonl")), 20, "the run to train")
    (out / "lock").unlink()
    Ending(process).expect("lock removed", INTERNAL, [f"output folder {out}", "expected the lock of this run", "--resume"],
                           out)


def check_differing_rank():
    other = runs.write_job(job_text(first="seed: 1"), name="other.yaml")
    job = runs.write_job(job_text(), name="first.yaml")
    wrapper = runs.folder / "wrapper"
    wrapper.write_text(f'#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = {ranks - 1} ] && job={other} || job={job}\n'
                       f'exec {program()} train "$job" "$@"\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IEXEC)
    command = runs.train_command(job, runs.new_out(), ranks)
    out = command[-1]
    ending = Ending(runs.start([*command[:2], wrapper, "--out", out]))
    ending.expect("a rank with another job", BAD_INPUT,
                  [f"rank {ranks - 1} (host {os.uname().nodename}, process ", "hash of the job", "expected", "found",
                   "Start all ranks with"], out)


def check_more_ranks_than_work():
    out = runs.new_out()
    output = runs.check(runs.train_command(runs.write_job(job_text(), name="small.yaml"), out, ranks + 3))
    if "more ranks than work" not in output:
        fail(f"expected a note that there are more ranks than work, found\n{output}")
    expect_equal(reference, results(out), "more ranks than work")


def check_open_files():
    """Each model keeps two logs open: a soft limit is raised; where the hard one is too low the job is refused."""
    count = 60 * ranks
    many = f"""  - name: many-${{seed}}
    sweep: {{seed: {list(range(count))}}}
    layers: [flatten, {{linear: 10}}]
    optimizer: {{sgd: {{lr: 0.1}}}}
    steps: 1
"""
    job = runs.write_job(job_text(more=many), name="many.yaml")

    def limited(kind):
        command = [str(part) for part in runs.train_command(job, runs.new_out(), ranks)]
        # Open MPI's launcher needs some files too, so that only the program's own processes are limited.
        return [*command[:2], "bash", "-c", f'ulimit {kind} -n 100; exec "$@"', "bash", *command[2:]]

    runs.check(limited("-S"))
    Ending(runs.start(limited("-H -S"))).expect("more models than files may be open", BAD_INPUT,
                                               ["models: expected at most 0 on one rank", "100 files", "ulimit -n"])


with Runs() as runs:
    runs.make_data()
    reference = results(runs.train(runs.write_job(job_text()), 1))
    check_job_files()
    check_data()
    check_rows()
    check_output_folder()
    check_trace()
    check_folder_in_use()
    check_lost_folder()
    if ranks > 1:
        check_differing_rank()
    check_more_ranks_than_work()
    check_open_files()
