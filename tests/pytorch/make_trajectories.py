#!/usr/bin/env python3
"""Makes what tests/data/train holds of PyTorch's own results: schedules, optimizers, and a safetensors file.

Needs torch 2.11 and safetensors. Usage: tests/pytorch/make_trajectories.py
"""

import json
import math
import pathlib
import warnings

import safetensors.torch
import torch
from torch.optim import lr_scheduler

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "train"
STEPS = 60
BASE_LR = 0.1

# name -> (how PyTorch is told, how ScheduleSpec is told)
SCHEDULES = {
    "step": (lambda o: lr_scheduler.StepLR(o, 7, 0.5), dict(kind="step", step_size=7, gamma=0.5)),
    "multi_step": (
        lambda o: lr_scheduler.MultiStepLR(o, [5, 30, 31], 0.3),
        dict(kind="multi_step", milestones=[5, 30, 31], gamma=0.3),
    ),
    "exponential": (lambda o: lr_scheduler.ExponentialLR(o, 0.95), dict(kind="exponential", gamma=0.95)),
    "polynomial": (lambda o: lr_scheduler.PolynomialLR(o, 40, 2.0), dict(kind="polynomial", total=40, power=2.0)),
    "cosine": (lambda o: lr_scheduler.CosineAnnealingLR(o, STEPS), dict(kind="cosine")),
    "cosine_min_short": (
        lambda o: lr_scheduler.CosineAnnealingLR(o, 25, 0.01),
        dict(kind="cosine", total=25, min_lr=0.01),
    ),
    "cosine_restarts": (
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 8, 1, 0.001),
        dict(kind="cosine_restarts", restart_period=8, min_lr=0.001),
    ),
    "cosine_restarts_growing": (
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 5, 2),
        dict(kind="cosine_restarts", restart_period=5, restart_factor=2),
    ),
    "one_cycle": (lambda o: lr_scheduler.OneCycleLR(o, BASE_LR, STEPS), dict(kind="one_cycle")),
    "one_cycle_three_phase": (
        lambda o: lr_scheduler.OneCycleLR(o, 0.5, STEPS, pct_start=0.25, three_phase=True, div_factor=10.0),
        dict(kind="one_cycle", max_lr=0.5, pct_start=0.25, three_phase=True, div_factor=10.0),
    ),
    "one_cycle_linear": (
        lambda o: lr_scheduler.OneCycleLR(
            o, 0.5, STEPS, anneal_strategy="linear", base_momentum=0.7, max_momentum=0.9, final_div_factor=100.0
        ),
        dict(
            kind="one_cycle", max_lr=0.5, cosine_anneal=False, base_momentum=0.7, max_momentum=0.9, final_div_factor=100.0
        ),
    ),
    "one_cycle_without_momentum": (
        lambda o: lr_scheduler.OneCycleLR(o, 0.5, STEPS, cycle_momentum=False),
        dict(kind="one_cycle", max_lr=0.5, cycle_momentum=False),
    ),
}

WARMUP = 12


def after_warmup(schedule):
    """The schedule after a linear warm-up, as PyTorch combines them."""
    return lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o, 0.2, 1.0, WARMUP), schedule(o)], milestones=[WARMUP]
    )


REST = STEPS - WARMUP
WARMED_UP = {
    "constant": (lambda o: lr_scheduler.ConstantLR(o, 1.0, 1), dict(kind="constant")),
    "step": SCHEDULES["step"],
    "exponential": SCHEDULES["exponential"],
    "polynomial": (lambda o: lr_scheduler.PolynomialLR(o, REST, 1.0), dict(kind="polynomial")),
    "cosine": (lambda o: lr_scheduler.CosineAnnealingLR(o, REST), dict(kind="cosine")),
    "cosine_restarts": SCHEDULES["cosine_restarts"],
    "one_cycle": (lambda o: lr_scheduler.OneCycleLR(o, 0.5, REST), dict(kind="one_cycle", max_lr=0.5)),
}
for name, (make, spec) in WARMED_UP.items():
    SCHEDULES["warmup_" + name] = (after_warmup(make), dict(spec, warmup_steps=WARMUP, warmup_start=0.2))


def sgd():
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=BASE_LR, momentum=0.9)


def schedule_trajectory(make, spec):
    optimizer = sgd()
    schedule = make(optimizer)
    lr, momentum = [], []
    for step in range(STEPS):
        lr.append(float(optimizer.param_groups[0]["lr"]))
        momentum.append(optimizer.param_groups[0]["momentum"])
        optimizer.step()
        if step + 1 < STEPS:
            schedule.step()
    trajectory = dict(spec=spec, lr=lr)
    if spec["kind"] == "one_cycle" and spec.get("cycle_momentum", True):
        trajectory["momentum"] = momentum
    return trajectory


PLATEAUS = {
    "default": dict(patience=2),
    "absolute": dict(patience=1, threshold=0.05, threshold_mode="abs", factor=0.5),
    "cooldown": dict(patience=1, cooldown=3, factor=0.3, min_lr=0.002),
    "greater": dict(mode="max", patience=2, threshold=0.02),
    "tiny": dict(patience=0, factor=0.01),
}


def plateau_trajectory(options):
    """Observes values that fall, wobble, stay, and rise."""
    optimizer = sgd()
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, **options)
    values, lr = [], []
    for step in range(STEPS):
        values.append(1.5 + math.exp(-step / 10) + 0.1 * math.sin(step * 1.7) if step < 45 else 2.0 + 0.01 * step)
        schedule.step(values[-1])
        lr.append(optimizer.param_groups[0]["lr"])
    spec = {key: value for key, value in options.items() if key not in ("mode", "threshold_mode")}
    spec["kind"] = "plateau"
    spec["threshold_relative"] = options.get("threshold_mode") != "abs"
    spec["greater_is_better"] = options.get("mode") == "max"
    return dict(spec=spec, values=values, lr=lr)


def optimizer_cases():
    """name -> (class, options); options carry PyTorch's names, which are OptimizerSpec's."""
    cases = {
        "sgd": ("SGD", dict(lr=0.1)),
        "sgd_momentum": ("SGD", dict(lr=0.1, momentum=0.9, weight_decay=0.02)),
        "sgd_dampening": ("SGD", dict(lr=0.1, momentum=0.9, dampening=0.3)),
        "sgd_nesterov": ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.02)),
        "rmsprop": ("RMSprop", dict(lr=0.01, weight_decay=0.05)),
        "rmsprop_momentum": ("RMSprop", dict(lr=0.01, alpha=0.9, momentum=0.8)),
        "rmsprop_centered": ("RMSprop", dict(lr=0.01, alpha=0.9, momentum=0.8, centered=True)),
        "adagrad": ("Adagrad", dict(lr=0.05, lr_decay=0.1, weight_decay=0.05, initial_accumulator_value=0.5)),
    }
    for kind in ("Adam", "AdamW"):
        cases[kind.lower()] = (kind, dict(lr=0.01, weight_decay=0.05))
        cases[kind.lower() + "_amsgrad"] = (kind, dict(lr=0.01, beta1=0.8, beta2=0.95, amsgrad=True))
    return cases


def wave(count, phase):
    """Numbers that a C++ test computes likewise."""
    return torch.tensor([math.sin(0.7 * i + phase) for i in range(count)], dtype=torch.float64)


def optimizer_trajectory(kind, options):
    """20 steps with one-cycle, so that the rate and the momentum (where there is one) move."""
    parameter = wave(13, 0.0).requires_grad_()
    arguments = dict(options)
    if "beta1" in arguments:
        arguments["betas"] = (arguments.pop("beta1"), arguments.pop("beta2"))
    optimizer = getattr(torch.optim, kind)([parameter], **arguments)
    moves = kind in ("Adam", "AdamW") or options.get("momentum", 0) > 0
    schedule = lr_scheduler.OneCycleLR(optimizer, options["lr"], 20, cycle_momentum=moves)
    found = {}
    for step in range(20):
        parameter.grad = wave(13, 1.3 * (step + 1))
        optimizer.step()
        if step in (0, 19):
            found[f"step{step + 1}"] = parameter.detach().tolist()
        if step < 19:
            schedule.step()
    return dict(kind=kind, spec=options, cycle_momentum=moves, **found)


def write_python_safetensors():
    numbers = torch.arange(6, dtype=torch.float64).reshape(2, 3) / 4 - 0.5
    names = {"Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16"}
    tensors = {f"float.{name}": numbers.to(getattr(torch, kind)) for name, kind in names.items()}
    for name, kind in {"Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8"}.items():
        tensors[f"int.{name}"] = torch.arange(-2, 3, dtype=getattr(torch, kind))
    tensors["bytes"] = torch.tensor([0, 127, 255], dtype=torch.uint8)
    tensors["flags"] = torch.tensor([True, False])
    tensors["scalar"] = torch.tensor(7.0)
    tensors["empty"] = torch.zeros(0, 4)
    safetensors.torch.save_file(tensors, OUT / "python.safetensors", metadata={"made": "by safetensors.torch"})


def main():
    warnings.simplefilter("ignore")
    OUT.mkdir(parents=True, exist_ok=True)
    schedules = {
        "made_with": f"torch {torch.__version__.split('+')[0]}",
        "base_lr": BASE_LR,
        "schedules": {name: schedule_trajectory(*case) for name, case in SCHEDULES.items()},
        "plateaus": {name: plateau_trajectory(options) for name, options in PLATEAUS.items()},
    }
    (OUT / "schedules.json").write_text(json.dumps(schedules) + "\n")
    optimizers = {name: optimizer_trajectory(*case) for name, case in optimizer_cases().items()}
    (OUT / "optimizers.json").write_text(json.dumps(optimizers) + "\n")
    write_python_safetensors()


if __name__ == "__main__":
    main()
