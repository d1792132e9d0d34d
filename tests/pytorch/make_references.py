"""Makes tests/data/references: archives of public packages' networks, and what PyTorch computes with each.

Usage: python tests/pytorch/make_references.py [NAME...]
       (torch 2.11, torchvision 0.26, timm 1.0, transformers 5, safetensors)

NAME.pt2 is the archive of the network in training mode, without active dropout; stack traces and example inputs, which
nothing reads, are taken out of it. PyTorch runs the archive itself, read back, in float64 (every float32 that the
program names becomes float64) and in float32. One of NAME_decomposed holds ATen kernels alone (run_decompositions);
PyTorch, which cannot train it once read back, runs the program that it was made from. NAME.safetensors holds, for the
batches b = 0 and 1 of different sizes,

  b/input/I      inputs in the order of the call; int8 stands for a real number, 32 times as large
  b/outputs      summaries of the outputs whose first dimension is the batch
  b/gradients    summaries of the gradients of sum(output * wave), for the parameters that the metadata names
  b/buffers      summaries of the buffers that the metadata names, after this one step
  evaluation/outputs         as 0/outputs, by the network exported in evaluation mode (absent where its outputs differ)
  sgd/losses, adam/losses    of 5 steps on the batches 0, 1, 0, 1, 0: sum((output - wave)^2) / (2 rows)
  sgd/parameters, .../buffers    Euclidean norms after them

in float64. The summary of a tensor is its Euclidean norm, then `count` = min(16, size) of its elements (outputs: 256),
the elements i * size // count. The wave of an output is sin(0.7 k + 0.3) for its element k.

manifest.json names all networks, with PyTorch's own rounding effects: "float32" is the largest difference between
float32 and float64, "nudged" that of float64 trajectories whose weights began one unit in the last place away. A
difference is relative to the tensor's norm, or to a thousandth of the norm of all tensors of its kind together, if that
is larger.
"""
import copy
import importlib.metadata
import json
import pathlib
import sys
import tempfile
import time
import traceback
import warnings

import torch
from safetensors.torch import save_file

import reference_language
import reference_networks
import reference_vision
from small_archive import exported, save_small

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "references"
MANIFEST = FOLDER / "manifest.json"
ROWS = (4, 3)
STEPS = 5
SCALE = 32
OPTIMIZERS = {"sgd": lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9),
              "adam": lambda p: torch.optim.Adam(p, lr=1e-3, eps=1e-3)}
# Like others that are stored, or large: made only when they are named.
EXTRA = {"alexnet", "resnext", "deeplab_v3", "lraspp", "swin_v2", "video_r2plus1d", "timm_resnet", "timm_efficientnet",
         "timm_convnext", "timm_byobnet", "timm_resmlp", "bert_masked_lm", "roberta", "electra", "gpt_neox", "qwen3",
         "opt", "hf_vit"}
CASES = reference_vision.CASES | reference_language.CASES | reference_networks.CASES
DECOMPOSED = "_decomposed"
CASES |= {name + DECOMPOSED: CASES[name] for name in ("siamese", "conv_autoencoder", "signal_net", "volume_net")}


def without_dropout(model):
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, float) and ("drop" in name or (name == "p" and "Drop" in type(module).__name__)):
                setattr(module, name, 0.0)
    return model


def perturbed(model):
    """No parameter is left at zero or one, and running statistics are other than at the start."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape))
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.add_(0.1 * torch.randn(buffer.shape))
            if name.endswith("running_var"):
                buffer.mul_(torch.exp(0.2 * torch.randn(buffer.shape)))
    return model


def quantised(tensor):
    return (tensor * SCALE).round().clamp(-127, 127).to(torch.int8) if tensor.is_floating_point() else tensor


def made_real(tensor, dtype):
    return tensor.to(dtype) / SCALE if tensor.dtype == torch.int8 else tensor


def in_double(module):
    """The program in float64: parameters, buffers, constants, and every float32 that a node names."""
    def cast(value):
        return torch.float64 if value is torch.float32 else value
    for part in module.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
                setattr(part, name, value.double())
        if isinstance(part, torch.fx.GraphModule):
            for node in part.graph.nodes:
                node.args = torch.fx.node.map_aggregate(node.args, cast)
                node.kwargs = torch.fx.node.map_aggregate(node.kwargs, cast)
            part.recompile()
    return module.double()


class Run:
    """The archive's program in one precision."""

    def __init__(self, path, dtype):
        self.dtype = dtype
        module = torch.export.load(path).module(check_guards=False)
        self.module = in_double(module) if dtype == torch.float64 else module

    def fresh(self):
        return copy.deepcopy(self.module)

    def outputs(self, module, batch):
        args, kwargs = batch
        torch.set_default_dtype(self.dtype)
        try:
            result = module(*[made_real(a, self.dtype) for a in args],
                            **{key: made_real(a, self.dtype) for key, a in kwargs.items()})
        finally:
            torch.set_default_dtype(torch.float32)
        rows = next(iter([*args, *kwargs.values()])).shape[0]
        tensors = []
        for leaf in torch.utils._pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and leaf.dim() and leaf.shape[0] == rows:
                if not any(leaf is other for other in tensors):
                    tensors.append(leaf)
        return tensors


def wave(tensor):
    return torch.sin(0.7 * torch.arange(tensor.numel(), dtype=torch.float64) + 0.3).view(tensor.shape).to(tensor.dtype)


def one_step(run, batch):
    module = run.fresh()
    outputs = run.outputs(module, batch)
    sum((output * wave(output)).sum() for output in outputs).backward()
    gradients = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    buffers = {name: buffer for name, buffer in module.named_buffers() if buffer.is_floating_point()}
    return {"outputs": dict(enumerate(outputs)), "gradients": gradients, "buffers": buffers}


def trajectory(run, batches, optimizer, nudge=0):
    module = run.fresh()
    with torch.no_grad():
        for parameter in module.parameters():
            if nudge and parameter.is_floating_point():
                parameter.copy_(torch.nextafter(parameter, torch.full_like(parameter, nudge * torch.inf)))
    stepper = OPTIMIZERS[optimizer](module.parameters())
    losses = []
    for step in range(STEPS):
        batch = batches[step % 2]
        outputs = run.outputs(module, batch)
        loss = sum((output - wave(output)).square().sum() for output in outputs) / (2 * outputs[0].shape[0])
        stepper.zero_grad()
        loss.backward()
        stepper.step()
        losses.append(loss.detach())
    buffers = {name: buffer for name, buffer in module.named_buffers() if buffer.is_floating_point()}
    return {"losses": dict(enumerate(losses)), "parameters": dict(module.named_parameters()), "buffers": buffers}


def twins(model):
    """Names of parameters that are tied to others: the archive's program, read back, trains one of them alone."""
    everything = list(model.named_parameters(remove_duplicate=False))
    return {name for name, p in everything if sum(p is other for _, other in everything) > 1}


def norm(tensor):
    return tensor.detach().double().norm().item()


def difference(found, expected):
    """Of two dictionaries of tensors."""
    total = sum(norm(tensor)**2 for tensor in expected.values())**0.5
    return max([norm(found[name].double() - tensor) / max(norm(tensor), 1e-3 * total, 1e-300)
                for name, tensor in expected.items()], default=0.0)


def norms(tensors):
    return {name: tensor.detach().double().norm() for name, tensor in tensors.items()}


def summary(tensors, most=16):
    parts = [torch.zeros(0, dtype=torch.float64)]
    for tensor in tensors.values():
        flat = tensor.detach().double().reshape(-1)
        count = min(most, flat.numel())
        parts += [flat.norm().view(1), flat[[i * flat.numel() // count for i in range(count)]]]
    return torch.cat(parts)


def check_against_eager(model, run, batch, outputs):
    eager = run.outputs(copy.deepcopy(model), batch)
    if len(eager) != len(outputs) or difference(dict(enumerate(outputs)), dict(enumerate(eager))) > 1e-5:
        raise RuntimeError("the archive computes something else than the model")


def evaluated(model, batch, is_like):
    """By an archive of the network in evaluation mode; none where its outputs are others."""
    args, kwargs = batch
    float_args = tuple(made_real(a, torch.float32) for a in args)
    float_kwargs = {key: made_real(a, torch.float32) for key, a in kwargs.items()}
    program = exported(model.eval(), float_args, float_kwargs, is_dynamic=False)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "evaluation.pt2"
        save_small(program, path)
        run = Run(path, torch.float64)
        outputs = run.outputs(run.fresh(), batch)
    return dict(enumerate(outputs)) if [o.shape for o in outputs] == [o.shape for o in is_like] else None


def make(name):
    torch.manual_seed(sum(name.encode()))
    build, positional, keyword = CASES[name]
    model = perturbed(without_dropout(build())).train()
    batches = [([quantised(maker(rows)) for maker in positional],
                {key: quantised(maker(rows)) for key, maker in keyword.items()}) for rows in ROWS]
    args = tuple(made_real(a, torch.float32) for a in batches[0][0])
    kwargs = {key: made_real(a, torch.float32) for key, a in batches[0][1].items()}
    path = FOLDER / f"{name}.pt2"
    program = exported(model, args, kwargs, is_dynamic=True)
    save_small(program, path)

    single, double = Run(path, torch.float32), Run(path, torch.float64)
    if name.endswith(DECOMPOSED):
        save_small(program.run_decompositions(), path)
    stored, deviation, nudged = {}, {}, {}
    for b, batch in enumerate(batches):
        for i, tensor in enumerate([*batch[0], *batch[1].values()]):
            stored[f"{b}/input/{i}"] = tensor
        found, expected = one_step(single, batch), one_step(double, batch)
        if b == 0:
            check_against_eager(model, single, batch, list(found["outputs"].values()))
            names = {kind: list(expected[kind]) for kind in ("gradients", "buffers")}
            unused_twins = twins(model) - expected["gradients"].keys()
            names["parameters"] = [p for p, _ in double.module.named_parameters() if p not in unused_twins]
            evaluation = evaluated(model, batch, list(expected["outputs"].values()))
            if evaluation is not None:
                stored["evaluation/outputs"] = summary(evaluation, 256)
        for kind, tensors in expected.items():
            stored[f"{b}/{kind}"] = summary(tensors, 256 if kind == "outputs" else 16)
            deviation[kind] = max(deviation.get(kind, 0), difference(found[kind], tensors))
    for optimizer in OPTIMIZERS:
        expected = trajectory(double, batches, optimizer)
        runs = [trajectory(single, batches, optimizer, nudge) for nudge in (0, 1, -1)]
        near = [trajectory(double, batches, optimizer, nudge) for nudge in (1, -1)]
        for kind, tensors in expected.items():
            key = f"{optimizer}/{kind}"
            values = norms({name: tensors[name] for name in names.get(kind, tensors)})
            stored[key] = torch.stack([torch.zeros(()).double(), *values.values()])[1:]
            deviation[key], nudged[key] = (max(difference(norms(run[kind]), values) for run in made)
                                           for made in (runs, near))
    save_file({key: tensor.contiguous() for key, tensor in stored.items()}, FOLDER / f"{name}.safetensors",
              {key: json.dumps(value) for key, value in names.items()})
    origins = {base.__module__.split(".")[0] for module in model.modules() for base in type(module).__mro__}
    package = next(p for p in ("timm", "transformers", "torchvision", "torch") if p in origins)
    return {"package": f"{package} {importlib.metadata.version(package)}",
            "float32": {kind: float(f"{value:.2g}") for kind, value in deviation.items()},
            "nudged": {kind: float(f"{value:.2g}") for kind, value in nudged.items()}}


def main(chosen):
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    failed = []
    for name in chosen or [name for name in CASES if name not in EXTRA]:
        begin = time.time()
        try:
            entry = make(name)
        except Exception:
            traceback.print_exc(limit=-3)
            failed.append(name)
            for suffix in ("pt2", "safetensors"):
                (FOLDER / f"{name}.{suffix}").unlink(missing_ok=True)
            continue
        manifest = json.loads(MANIFEST.read_text()) if MANIFEST.exists() else {}
        manifest[name] = entry
        ordered = {key: manifest[key] for key in CASES if key in manifest}
        MANIFEST.write_text(json.dumps(ordered, indent=2) + "\n")
        sizes = [(FOLDER / f"{name}.{suffix}").stat().st_size // 1000 for suffix in ("pt2", "safetensors")]
        print(f"{name}: {sizes} kB, {time.time() - begin:.0f} s, {entry}", flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
