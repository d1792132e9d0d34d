"""Makes tests/data/zoo/NAME.safetensors: outputs of networks that are too large to store, from torchvision in float64.

Usage: python tests/pytorch/make_zoo_oracles.py    (torch, torchvision, safetensors)

Parameter number k has element j = scale sin(1000 sin(j + k)): scale is sqrt(4 / fan in) for weights, so that signals
keep their size through the network, and 0.1 for vectors; the weights of norms have 1 added. Each file holds `input` and
`output` (training mode); its metadata `layers`, `input_shape` and `parameters`, the state-dict names in order.
"""
import json
import pathlib

import torch
from make_layer_oracles import small_resnet
from safetensors.torch import save_file
from torch import nn
from torchvision.models.vgg import VGG, cfgs, make_layers

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "zoo"


def vgg11(batch_norm):
    model = VGG(make_layers(cfgs["A"], batch_norm=batch_norm), num_classes=3, init_weights=False, dropout=0)
    model.classifier[0] = nn.Linear(512 * 7 * 7, 6)
    model.classifier[3] = nn.Linear(6, 6)
    model.classifier[6] = nn.Linear(6, 3)
    return model


def vgg11_grey():
    model = vgg11(True)
    model.features[0] = nn.Conv2d(1, 64, 3, padding=1)
    return model


VGG_KEYS = {"classes": 3, "hidden": 6, "dropout": 0}
CASES = {
    "vgg11": ([{"vgg11": VGG_KEYS}], [3, 32, 32], 2, lambda: vgg11(False)),
    "vgg11_batch_norm": ([{"vgg11": {**VGG_KEYS, "batch_norm": True}}], [1, 32, 32], 3, vgg11_grey),
    "resnet56": ([{"resnet56": {"classes": 3, "width": 4}}], [3, 8, 8], 3, lambda: small_resnet(9, 4, 3)),
}


def fill(model):
    for k, (name, parameter) in enumerate(model.named_parameters()):
        j = torch.arange(parameter.numel(), dtype=torch.float64)
        vector = parameter.dim() == 1
        scale = 0.1 if vector else (4 / (parameter.numel() // parameter.shape[0])) ** 0.5
        offset = 1 if vector and name.endswith(".weight") else 0
        with torch.no_grad():
            parameter.copy_((offset + scale * torch.sin(1000 * torch.sin(j + k))).reshape(parameter.shape))


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (layers, shape, batch, build) in CASES.items():
        model = build().train()
        fill(model)
        x = torch.randn(batch, *shape)
        with torch.no_grad():
            y = model(x)
        metadata = {"layers": json.dumps(layers), "input_shape": json.dumps(shape),
                    "parameters": json.dumps([key for key, _ in model.named_parameters()])}
        save_file({"input": x, "output": y}, FOLDER / f"{name}.safetensors", metadata)


if __name__ == "__main__":
    main()
