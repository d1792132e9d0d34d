"""Runs that must end by a fault: how they end, how fast, what they say, and that nothing of them stays behind."""
import os
import queue
import signal
import threading
import time

from tutti_runs import TIME_FACTOR, fail, rank_processes

# A small job of models that finish; {more} takes further models, {data} further data sets, {first} keys of the first.
JOB = """
run: {{out: OUT, lanes: 1, deadline: 5}}
data:
  digits: {{train: data/train-*.h5, test: data/test-*.h5}}
{data}
defaults: {{data: digits, loss: cross_entropy, batch: 32, epochs: 2}}
models:
  - name: good
    layers: [flatten, {{linear: 16}}, relu, {{linear: 10}}]
    optimizer: {{adam: {{lr: 0.01}}}}
    {first}
  - name: other
    layers: [flatten, {{linear: 8}}, {{batch_norm1d: {{}}}}, relu, {{dropout: 0.2}}, {{linear: 10}}]
    optimizer: {{sgd: {{lr: 0.1}}}}
    grains: 2
{more}
"""

def on_rank(rank, fault, command):
    """The command of Runs.train_command, with TUTTI_FAULT on one of its ranks."""
    mpirun, ranks, *program = [str(part) for part in command]
    script = f'[ "$OMPI_COMM_WORLD_RANK" != {rank} ] || export TUTTI_FAULT={fault}; exec "$@"'
    return [mpirun, ranks, "bash", "-c", script, "bash", *program]


LEAVE_SECONDS = 5 * TIME_FACTOR


def job_text(more="", data="", first=""):
    return JOB.format(more=more, data=data, first=first)


class Ending:
    """How a started run ended: its exit code, its output, and the seconds from a sign in the output to the end."""

    def __init__(self, process, sign="tutti: ", timeout=60 * TIME_FACTOR):
        lines = queue.Queue()
        reader = threading.Thread(target=lambda: [lines.put((time.monotonic(), line)) for line in process.stdout])
        reader.start()
        try:
            self.code = process.wait(timeout)
        except Exception:
            os.killpg(process.pid, signal.SIGKILL)
            fail(f"hung for {timeout} s\n" + "".join(line for _, line in list(lines.queue)))
        ended = time.monotonic()
        reader.join()
        seen = list(lines.queue)
        self.output = "".join(line for _, line in seen)
        first = next((when for when, line in seen if sign in line), ended)
        self.seconds_after_sign = ended - first

    def expect(self, what, code, fragments, out=None):
        """Fails unless the run ended so, said all of this, and left no process of `out` behind."""
        if self.code != code:
            fail(f"{what}: expected exit code {code}, found {self.code}\n{self.output}")
        for fragment in fragments:
            if str(fragment) not in self.output:
                fail(f"{what}: expected a message with '{fragment}', found\n{self.output}")
        if self.seconds_after_sign > LEAVE_SECONDS:
            fail(f"{what}: expected all ranks to leave within {LEAVE_SECONDS} s of the message, found "
                 f"{self.seconds_after_sign:.1f} s\n{self.output}")
        left = rank_processes(str(out)) if out else []
        if left:
            fail(f"{what}: expected no process of the job to stay, found {left}")
