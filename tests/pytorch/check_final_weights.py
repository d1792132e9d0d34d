"""Checks that PyTorch takes what a training leaves behind: final/weights.safetensors loads strictly into model.py's
network, and its results on the test rows are those that the training logged last.

Usage: python tests/pytorch/check_final_weights.py    (torch, torchvision, safetensors, numpy; build/bin/tutti or TUTTI)
"""
import pathlib
import sys

import torch
from run_cases import CASES, DEFAULTS
from run_networks import NETWORKS, make_data_sets
from run_training import Training, mean_loss, metrics_of
from safetensors.torch import load_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "whole"))
from pytorch_trajectories import prepare, trained  # noqa: E402
from tutti_runs import Runs  # noqa: E402

TOLERANCE = 1e-5


def rebuilt_model(folder, dtype):
    scope = {}
    exec(compile((folder / "model.py").read_text(), "model.py", "exec"), scope)
    model = scope["Model"]().to(dtype).eval()
    model.load_state_dict(load_file(folder / "final/weights.safetensors"), strict=True)
    return model


@torch.no_grad()
def difference(case, arrays, folder, dtype):
    """The greatest of loss and metrics between PyTorch's evaluation and the last one logged."""
    network, settings = case
    settings = {**DEFAULTS, **settings}
    data_set = NETWORKS[network][0]
    x, y = Training.tensors(data_set, arrays[data_set], "test", dtype)
    outputs = rebuilt_model(folder, dtype)(x)
    found = {"loss": mean_loss(settings, outputs, y).item()} | metrics_of(settings, outputs, y)
    logged = trained(folder)
    return max(abs(value - logged[f"test.{name}"][-1]) for name, value in found.items())


def main():
    arrays = make_data_sets()
    with Runs() as runs:
        models = runs.train(prepare(runs), 2) / "models"
        differences = {}
        for name, case in CASES.items():
            for dtype in (torch.float32, torch.float64):
                variant = f"{name}-{str(dtype).removeprefix('torch.')}-instructions"
                differences[variant] = difference(case, arrays, models / variant, dtype)
    farthest = max(differences, key=differences.get)
    print(f"{len(differences)} models loaded; evaluations differ by {differences[farthest]:.1e} at most ({farthest})")
    return 0 if differences[farthest] <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
