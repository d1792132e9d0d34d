"""The comparison of pytorch_trajectories.py sees small changes: cases trained with one wrong setting must differ.

Usage: pytorch_sensitivity.py RANKS
"""
import sys

from pytorch_trajectories import ENGINES, EPSILON, differing, expected_cases, prepare
from tutti_runs import Runs, fail

# case -> a setting that is not the one PyTorch was given
CHANGES = {
    "layer-dropout": "seed=6",
    "layer-gelu_tanh": "layers.1.gelu=none",
    "layer-softplus": "layers.1.softplus.threshold=1.6",
    "layer-elu": "layers.1.elu=0.7001",
    "layer-batch_norm1d": "layers.0.batch_norm1d.momentum=0.3001",
    "layer-layer_norm": "layers.3.layer_norm.eps=0.00101",
    "layer-lenet5": "optimizer.adam.lr=0.0020001",
    "loss-label_smoothing": "loss.cross_entropy.label_smoothing=0.1001",
    "loss-ignore_index": "loss.cross_entropy.ignore_index=4",
    "loss-huber": "loss.huber.delta=0.4001",
    "loss-bce_weights": "loss.bce_with_logits.positive_weights=[0.5, 1.0, 4.001]",
    "optimizer-sgd": "optimizer.sgd.lr=0.20002",
    "optimizer-sgd_dampening": "optimizer.sgd.dampening=0.3001",
    "optimizer-sgd_nesterov": "optimizer.sgd.nesterov=false",
    "optimizer-adam": "optimizer.adam.eps=1.1e-7",
    "optimizer-adam_amsgrad": "optimizer.adam.amsgrad=false",
    "optimizer-adamw": "optimizer.adamw.weight_decay=0.0101",
    "optimizer-adamw_amsgrad": "optimizer.adamw.betas=[0.7, 0.901]",
    "optimizer-rmsprop": "optimizer.rmsprop.eps=1.1e-5",
    "optimizer-rmsprop_centered": "optimizer.rmsprop.centered=false",
    "optimizer-adagrad": "optimizer.adagrad.eps=1e-8",
    "optimizer-adagrad_options": "optimizer.adagrad.lr_decay=0.1001",
    "schedule-polynomial": "schedule.polynomial.power=2.001",
    "schedule-cosine_restarts": "schedule.cosine_restarts.period_factor=1",
    "schedule-one_cycle": "schedule.one_cycle.cycle_momentum=false",
    "schedule-one_cycle_adam": "schedule.one_cycle.base_momentum=0.701",
    "schedule-plateau": "schedule.plateau.patience=1",
    "schedule-warmup": "schedule.constant.warmup_start=0.101",
    "clip-norm": "clip.norm=0.4001",
    "clip-value": "clip.value=0.0501",
    "groups-no_decay": "optimizer.adamw.weight_decay=0.301",
    "groups-frozen": "parameters.0.frozen=false",
    "accumulate-plain": "accumulate=2",
    "accumulate-batch_norm": "grains=1",
    "grains-4_batch_norm": "grains=2",
    "drop_last": "drop_last=false",
}


def changed_job(runs):
    """The job with the changed cases alone: it has a line for each model."""
    job = prepare(runs)
    begins = tuple(f'  - {{"name": "{name}-$' for name in CHANGES)
    lines = [line for line in job.read_text().splitlines() if not line.startswith("  - ") or line.startswith(begins)]
    job.write_text("\n".join(lines) + "\n")
    return job


def main(ranks):
    variants = [f"{precision}-{engine}" for precision in EPSILON for engine in ENGINES]
    settings = [word for name, change in CHANGES.items() for variant in variants
                for word in ("--set", f"models.{name}-{variant}.{change}")]
    cases = expected_cases()
    with Runs() as runs:
        out = runs.train(changed_job(runs), ranks, *settings)
        missed = [name for name in CHANGES if differing(name, cases[name], out / "models") < len(variants)]
    if missed:
        fail(f"with one setting wrong, these were still taken for PyTorch's: {missed}")
    print(f"{len(CHANGES)} of {len(CHANGES)} wrong settings seen")


if __name__ == "__main__":
    main(*sys.argv[1:])
