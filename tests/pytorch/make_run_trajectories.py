"""Makes tests/data/runs: whole trainings by PyTorch, for tests/whole/pytorch_trajectories.py.

Usage: python tests/pytorch/make_run_trajectories.py [CASE...]    (torch, torchvision, safetensors, numpy)

DATA.npz has a data set's arrays, NETWORK.safetensors a network's first weights, NETWORK.pt2 the network with them,
exported in training mode, job.yaml the job that trains all cases: by layer lists and, one case per network, by archives.
expected.safetensors holds each case's tensors after the last step as CASE/NAME, in float64; expected.json each case's
series (loss, gradient norm and learning rate of each step; results of each evaluation) and the spreads.

A spread is PyTorch's own rounding effect on a series or tensor: the greatest distance |a - b| / |b| (2-norms) of other
runs by PyTorch from the float64 run. For float64 the others begin one rounding of float64 away; for float32 they are
float32 runs, from the same weights and from one rounding away.
"""
import json
import pathlib
import sys

import numpy
import torch
from run_cases import CASES, DEFAULTS
from run_dropout import PhiloxDropout
from run_networks import DATA_SETS, NETWORKS, NORMALISED, make_data_sets
from run_training import Training
from safetensors.torch import save_file
from small_archive import exported, save_small
from torch import nn

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "runs"
NUDGES = (1, 2, 3)


def first_weights(network):
    """PyTorch's initialisation, moved away from values that would hide mistakes: scales of 1, offsets of 0."""
    torch.manual_seed(sum(map(ord, network)))
    net = NETWORKS[network][2]()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return net.state_dict()


def distance(found, expected):
    size = numpy.linalg.norm(expected)
    return float(numpy.linalg.norm(found - expected) / (size if size > 0 else 1))


def everything(training):
    """{series or tensor: flat float64 array}."""
    tensors = {name: value.double().flatten().numpy() for name, value in training.weights().items()}
    return {name: numpy.array(values) for name, values in training.series.items()} | tensors


def spreads(case, arrays, init, expected):
    found = {}
    for precision, dtype, seeds in (("float32", torch.float32, (None, *NUDGES)), ("float64", torch.float64, NUDGES)):
        runs = [everything(Training(case, arrays, init, dtype, seed).run()) for seed in seeds]
        found[precision] = {name: max(distance(run[name], values) for run in runs) for name, values in expected.items()}
    return found


def with_plain_dropout(net):
    """Users export nn.Dropout; the program draws its masks."""
    for name, module in net.named_children():
        setattr(net, name, nn.Dropout(module.p) if isinstance(module, PhiloxDropout) else with_plain_dropout(module))
    return net


def write_archives(arrays, init):
    for network, (data_set, _, make) in NETWORKS.items():
        net = make()
        net.load_state_dict(init[network])
        x = torch.from_numpy(arrays[data_set]["x_train"][:4])
        example = (x.long() if takes_indices(net) else x.float(),)
        save_small(exported(with_plain_dropout(net).train(), example, {}, is_dynamic=True), FOLDER / f"{network}.pt2")


def takes_indices(net):
    return any(isinstance(module, nn.Embedding) for module in net.modules())


def write_job():
    parts = {part: f"shards/{{}}-{part}-*.h5" for part in ("train", "test")}
    data = {name: {part: pattern.format(name) for part, pattern in parts.items()} | {"normalise": name in NORMALISED}
            for name in DATA_SETS}
    models = []
    for name, (network, settings) in CASES.items():
        data_set, layers, _ = NETWORKS[network]
        models.append({"name": f"{name}-${{precision}}-${{engine}}",
                       "sweep": {"precision": ["float32", "float64"], "engine": ["instructions", "island"]},
                       "data": data_set, "layers": layers, "init": f"{network}.safetensors"} | settings)
        if name.startswith("layer-"):
            models.append({"name": f"{name}-${{precision}}-exported", "sweep": {"precision": ["float32", "float64"]},
                           "data": data_set, "graph": f"{network}.pt2"} | settings)
    lines = ["# Made by tests/pytorch/make_run_trajectories.py.", "data:"]
    lines += [f"  {name}: {json.dumps(entry)}" for name, entry in data.items()]
    lines += [f"defaults: {json.dumps(DEFAULTS)}", "models:"]
    lines += [f"  - {json.dumps(model)}" for model in models]
    (FOLDER / "job.yaml").write_text("\n".join(lines) + "\n")


def main(chosen):
    torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    arrays = make_data_sets()
    for name, fields in arrays.items():
        numpy.savez(FOLDER / f"{name}.npz", **fields)
    init = {network: first_weights(network) for network in NETWORKS}
    for network, weights in init.items():
        save_file(weights, FOLDER / f"{network}.safetensors")
    write_archives(arrays, init)
    write_job()
    tensors, cases = {}, {}
    for name, case in CASES.items():
        if chosen and name not in chosen:
            continue
        training = Training(case, arrays, init[case[0]], torch.float64).run()
        spread = spreads(case, arrays, init[case[0]], everything(training))
        cases[name] = {"series": training.series, "spread": spread}
        tensors |= {f"{name}/{key}": value for key, value in training.weights().items()}
        print(f"{name:34}", *(f"{max(part.values()):.1e}" for part in spread.values()), flush=True)
    save_file(tensors, FOLDER / "expected.safetensors")
    lines = [f"{json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items()]
    (FOLDER / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
