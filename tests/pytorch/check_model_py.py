"""Checks that model.py files rebuild the networks: state dict, output, buffers and gradients of every stored oracle.

Usage: python tests/pytorch/check_model_py.py build/tests/print_model_py    (torch, safetensors)
"""
import json
import pathlib
import subprocess
import sys

import torch
from safetensors import safe_open

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"


def read(file):
    with safe_open(file, "pt") as handle:
        return {key: handle.get_tensor(key) for key in handle.keys()}, handle.metadata()


def rebuilt_model(program, tensors, metadata):
    request = {"layers": json.loads(metadata["layers"]), "input_shape": json.loads(metadata["input_shape"]),
               "indices": not tensors["input"].is_floating_point()}
    source = subprocess.run([program], input=json.dumps(request), text=True, capture_output=True, check=True).stdout
    scope = {}
    exec(compile(source, "model.py", "exec"), scope)
    return scope["Model"]()


def part(tensors, beginning):
    return {key.removeprefix(beginning): value for key, value in tensors.items() if key.startswith(beginning)}


def check_numbers(model, tensors):
    """Forward and backward with PyTorch's stored parameters."""
    parameters = part(tensors, "parameter/")
    buffers = part(tensors, "buffer_after/")
    found = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    expected = {key: tuple(value.shape) for key, value in (parameters | buffers).items()}
    assert found == expected, f"state dict: expected {expected}, found {found}"
    model.load_state_dict(parameters | {key: value for key, value in model.state_dict().items() if key in buffers})
    x = tensors["input"].requires_grad_("input_gradient" in tensors)
    output = model(x)
    torch.testing.assert_close(output, tensors["output"], rtol=1e-12, atol=1e-12)
    (output * tensors["output_gradient"]).sum().backward()
    if x.requires_grad:
        torch.testing.assert_close(x.grad, tensors["input_gradient"], rtol=1e-11, atol=1e-11)
    for key, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, tensors[f"gradient/{key}"], rtol=1e-11, atol=1e-11)
    for key, buffer in model.named_buffers():
        torch.testing.assert_close(buffer, buffers[key], rtol=1e-12, atol=1e-12)


def check_zoo(model, tensors, metadata):
    """The networks too large to store: their parameters follow a formula."""
    from make_zoo_oracles import fill

    names = [key for key, _ in model.named_parameters()]
    assert names == json.loads(metadata["parameters"]), names
    fill(model)
    torch.testing.assert_close(model(tensors["input"]), tensors["output"], rtol=1e-10, atol=1e-12)


def main(program):
    torch.set_default_dtype(torch.float64)
    files = sorted(DATA.glob("graph/*.safetensors")) + sorted(DATA.glob("zoo/*.safetensors"))
    assert files, f"no oracles under {DATA}"
    failures = 0
    for file in files:
        tensors, metadata = read(file)
        try:
            model = rebuilt_model(program, tensors, metadata)
            if "parameters" in metadata:
                check_zoo(model, tensors, metadata)
            else:
                check_numbers(model, tensors)
        except Exception as error:
            failures += 1
            print(f"{file.stem}: {type(error).__name__}: {error}")
    print(f"{len(files) - failures} of {len(files)} networks rebuilt")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
