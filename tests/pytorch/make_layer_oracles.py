"""Makes tests/data/graph/NAME.safetensors: forward and backward of layer lists, computed by PyTorch in float64.

Usage: python tests/pytorch/make_layer_oracles.py    (torch, safetensors)

Each file holds `input`, `output`, `output_gradient`, `input_gradient` (absent for indices), `parameter/NAME`,
`gradient/NAME` and `buffer_after/NAME` (after the one forward pass), NAME being the state-dict name. Its metadata hold
`layers` (the layer list as JSON), `input_shape` (without the batch) and the loss, sum(output * output_gradient). The
torch modules are written out by hand here: they say what a layer list must mean.
"""
import json
import pathlib

import torch
from safetensors.torch import save_file
from torch import nn

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "graph"


class Residual(nn.Module):
    def __init__(self, body, shortcut=None):
        super().__init__()
        self.body = body
        self.shortcut = shortcut or nn.Sequential()

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


class Branches(nn.Module):
    def __init__(self, join, *paths):
        super().__init__()
        self.paths = nn.ModuleList(paths)
        self.join = join

    def forward(self, x):
        return self.join([path(x) for path in self.paths])


class Reshape(nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.shape = shape

    def forward(self, x):
        return x.reshape(x.shape[0], *self.shape)


class LeNet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 1 * 1, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 3)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = torch.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc3(torch.relu(self.fc2(x)))


def small_resnet(blocks, width, classes):
    """torchvision's ResNet with its BasicBlock, cut to three stages and a 3 x 3 first convolution without pooling."""
    from torchvision.models.resnet import BasicBlock, ResNet

    model = ResNet(BasicBlock, [blocks, blocks, blocks, 1], num_classes=classes)
    model.inplanes = width
    model.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
    model.bn1 = nn.BatchNorm2d(width)
    model.maxpool = nn.Identity()
    model.layer1 = model._make_layer(BasicBlock, width, blocks)
    model.layer2 = model._make_layer(BasicBlock, 2 * width, blocks, stride=2)
    model.layer3 = model._make_layer(BasicBlock, 4 * width, blocks, stride=2)
    model.layer4 = nn.Identity()
    model.fc = nn.Linear(4 * width, classes)
    return model


CASES = {
    # name: (layer list, input shape per sample, batch, module)
    "linear": ([{"linear": 5}], [7], 3, lambda: nn.Sequential(nn.Linear(7, 5))),
    "linear_no_bias": ([{"linear": {"out": 5, "bias": False}}], [7], 3,
                       lambda: nn.Sequential(nn.Linear(7, 5, bias=False))),
    "linear_each_position": ([{"linear": {"out": 5, "each_position": True}}], [3, 4], 2,
                             lambda: nn.Sequential(nn.Linear(4, 5))),
    "embedding": ([{"embedding": {"count": 6, "dim": 4, "padding_idx": 2}}, "flatten", {"linear": 3}], [5], 4,
                  lambda: nn.Sequential(nn.Embedding(6, 4, padding_idx=2), nn.Flatten(), nn.Linear(20, 3))),
    "conv1d": ([{"conv1d": {"out": 4, "kernel": 3, "stride": 2, "padding": 1, "dilation": 2}}], [2, 11], 3,
               lambda: nn.Sequential(nn.Conv1d(2, 4, 3, stride=2, padding=1, dilation=2))),
    "conv2d": ([{"conv2d": {"out": 4, "kernel": 3}}], [2, 6, 5], 3, lambda: nn.Sequential(nn.Conv2d(2, 4, 3))),
    "conv2d_groups": ([{"conv2d": {"out": 6, "kernel": [3, 2], "stride": [2, 1], "padding": [1, 0],
                                   "dilation": [1, 2], "groups": 2, "bias": False}}], [4, 7, 6], 3,
                      lambda: nn.Sequential(nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), (1, 2), 2, bias=False))),
    "conv2d_depthwise": ([{"conv2d": {"out": 8, "kernel": 3, "padding": 1, "groups": 4}}], [4, 5, 5], 2,
                         lambda: nn.Sequential(nn.Conv2d(4, 8, 3, padding=1, groups=4))),
    "conv2d_same": ([{"conv2d": {"out": 3, "kernel": 5, "padding": "same"}}], [2, 6, 7], 2,
                    lambda: nn.Sequential(nn.Conv2d(2, 3, 5, padding="same"))),
    "conv2d_same_uneven": ([{"conv2d": {"out": 3, "kernel": 4, "padding": "same"}}], [2, 6, 7], 2,
                           lambda: nn.Sequential(nn.Conv2d(2, 3, 4, padding="same"))),
    "conv3d": ([{"conv3d": {"out": 3, "kernel": [2, 3, 2], "stride": 2, "padding": 1}}], [2, 4, 5, 4], 2,
               lambda: nn.Sequential(nn.Conv3d(2, 3, (2, 3, 2), stride=2, padding=1))),
    "conv_transpose2d": ([{"conv_transpose2d": {"out": 3, "kernel": 3, "stride": 2, "padding": 1,
                                                "output_padding": 1}}], [4, 4, 3], 2,
                         lambda: nn.Sequential(nn.ConvTranspose2d(4, 3, 3, 2, 1, 1))),
    "conv_transpose2d_groups": ([{"conv_transpose2d": {"out": 6, "kernel": [2, 3], "groups": 2, "dilation": [1, 2],
                                                       "bias": False}}], [4, 4, 3], 2,
                                lambda: nn.Sequential(nn.ConvTranspose2d(4, 6, (2, 3), groups=2, dilation=(1, 2),
                                                                         bias=False))),
    "max_pool1d": ([{"max_pool1d": {"kernel": 3, "stride": 2, "padding": 1}}], [2, 9], 3,
                   lambda: nn.Sequential(nn.MaxPool1d(3, 2, 1))),
    "max_pool2d": ([{"max_pool2d": 2}], [3, 6, 6], 2, lambda: nn.Sequential(nn.MaxPool2d(2))),
    "max_pool2d_overlapping": ([{"max_pool2d": {"kernel": [3, 2], "stride": [2, 1], "padding": 1,
                                                "dilation": [1, 2], "ceil_mode": True}}], [2, 8, 7], 2,
                               lambda: nn.Sequential(nn.MaxPool2d((3, 2), (2, 1), 1, (1, 2), ceil_mode=True))),
    "max_pool3d": ([{"max_pool3d": 2}], [2, 4, 4, 5], 2, lambda: nn.Sequential(nn.MaxPool3d(2))),
    "avg_pool1d": ([{"avg_pool1d": {"kernel": 4, "padding": 2, "count_include_pad": False}}], [2, 9], 3,
                   lambda: nn.Sequential(nn.AvgPool1d(4, padding=2, count_include_pad=False))),
    "avg_pool2d": ([{"avg_pool2d": {"kernel": 3, "stride": 2, "padding": 1, "ceil_mode": True}}], [2, 6, 7], 2,
                   lambda: nn.Sequential(nn.AvgPool2d(3, 2, 1, ceil_mode=True))),
    "avg_pool3d": ([{"avg_pool3d": {"kernel": [2, 1, 2]}}], [2, 4, 3, 5], 2,
                   lambda: nn.Sequential(nn.AvgPool3d((2, 1, 2)))),
    "adaptive_avg_pool1d": ([{"adaptive_avg_pool1d": 3}], [2, 8], 2,
                            lambda: nn.Sequential(nn.AdaptiveAvgPool1d(3))),
    "adaptive_avg_pool2d": ([{"adaptive_avg_pool2d": [2, 3]}], [2, 5, 7], 2,
                            lambda: nn.Sequential(nn.AdaptiveAvgPool2d((2, 3)))),
    "adaptive_avg_pool3d": ([{"adaptive_avg_pool3d": 2}], [2, 3, 4, 5], 2,
                            lambda: nn.Sequential(nn.AdaptiveAvgPool3d(2))),
    "batch_norm_vector": (["batch_norm"], [6], 5, lambda: nn.Sequential(nn.BatchNorm1d(6))),
    "batch_norm1d": ([{"batch_norm1d": {"momentum": 0.3}}], [3, 7], 4,
                     lambda: nn.Sequential(nn.BatchNorm1d(3, momentum=0.3))),
    "batch_norm2d": (["batch_norm2d"], [3, 4, 5], 3, lambda: nn.Sequential(nn.BatchNorm2d(3))),
    "batch_norm2d_plain": ([{"batch_norm": {"affine": False, "eps": 0.01}}], [3, 4, 5], 3,
                           lambda: nn.Sequential(nn.BatchNorm2d(3, eps=0.01, affine=False))),
    "batch_norm3d": (["batch_norm3d"], [2, 3, 4, 2], 3, lambda: nn.Sequential(nn.BatchNorm3d(2))),
    "layer_norm": (["layer_norm"], [4, 6], 3, lambda: nn.Sequential(nn.LayerNorm(6))),
    "layer_norm_two": ([{"layer_norm": {"dims": 2, "eps": 0.001}}], [3, 4, 5], 2,
                       lambda: nn.Sequential(nn.LayerNorm([4, 5], eps=0.001))),
    "group_norm": ([{"group_norm": 2}], [4, 3, 5], 3, lambda: nn.Sequential(nn.GroupNorm(2, 4))),
    "dropout_none": ([{"linear": 4}, {"dropout": 0}], [5], 3, lambda: nn.Sequential(nn.Linear(5, 4), nn.Dropout(0))),
    "flatten": (["flatten", {"linear": 3}], [2, 3, 2], 3, lambda: nn.Sequential(nn.Flatten(), nn.Linear(12, 3))),
    "flatten_part": ([{"flatten": {"start_dim": 2}}, {"conv1d": {"out": 2, "kernel": 2}}], [2, 3, 2], 3,
                     lambda: nn.Sequential(nn.Flatten(2), nn.Conv1d(2, 2, 2))),
    "reshape": ([{"reshape": [2, -1, 3]}, {"conv2d": {"out": 2, "kernel": 2}}], [12], 3,
                lambda: nn.Sequential(Reshape(2, 2, 3), nn.Conv2d(2, 2, 2))),
    "relu": (["relu"], [9], 3, lambda: nn.Sequential(nn.ReLU())),
    "leaky_relu": ([{"leaky_relu": 0.2}], [9], 3, lambda: nn.Sequential(nn.LeakyReLU(0.2))),
    "gelu": (["gelu"], [9], 3, lambda: nn.Sequential(nn.GELU())),
    "gelu_tanh": ([{"gelu": "tanh"}], [9], 3, lambda: nn.Sequential(nn.GELU("tanh"))),
    "silu": (["silu"], [9], 3, lambda: nn.Sequential(nn.SiLU())),
    "sigmoid": (["sigmoid"], [9], 3, lambda: nn.Sequential(nn.Sigmoid())),
    "tanh": (["tanh"], [9], 3, lambda: nn.Sequential(nn.Tanh())),
    "softplus": ([{"softplus": {"beta": 2, "threshold": 1.5}}], [9], 3, lambda: nn.Sequential(nn.Softplus(2, 1.5))),
    "elu": ([{"elu": 0.7}], [9], 3, lambda: nn.Sequential(nn.ELU(0.7))),
    "residual": ([{"linear": 6}, {"residual": [{"linear": 6}, "tanh"]}, "relu"], [5], 3,
                 lambda: nn.Sequential(nn.Linear(5, 6), Residual(nn.Sequential(nn.Linear(6, 6), nn.Tanh())),
                                       nn.ReLU())),
    "residual_shortcut": ([{"residual": {"body": [{"conv2d": {"out": 4, "kernel": 3, "padding": 1, "stride": 2}},
                                                  "batch_norm"],
                                         "shortcut": [{"conv2d": {"out": 4, "kernel": 1, "stride": 2}}]}}],
                          [2, 6, 6], 3,
                          lambda: nn.Sequential(Residual(
                              nn.Sequential(nn.Conv2d(2, 4, 3, 2, 1), nn.BatchNorm2d(4)),
                              nn.Sequential(nn.Conv2d(2, 4, 1, 2))))),
    "branches_concat": ([{"branches": [[{"conv2d": {"out": 2, "kernel": 1}}],
                                       [{"conv2d": {"out": 3, "kernel": 3, "padding": 1}}, "relu"], []]}],
                        [2, 4, 4], 2,
                        lambda: nn.Sequential(Branches(
                            lambda parts: torch.cat(parts, 1), nn.Sequential(nn.Conv2d(2, 2, 1)),
                            nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.ReLU()), nn.Sequential()))),
    "branches_add": ([{"branches": {"paths": [[{"linear": 4}], [{"linear": 4}, "sigmoid"], [{"linear": 4}, "tanh"]],
                                    "join": "add"}}, {"linear": 2}], [5], 3,
                     lambda: nn.Sequential(Branches(
                         sum, nn.Sequential(nn.Linear(5, 4)), nn.Sequential(nn.Linear(5, 4), nn.Sigmoid()),
                         nn.Sequential(nn.Linear(5, 4), nn.Tanh())), nn.Linear(4, 2))),
    "small_cnn": ([{"conv2d": {"out": 4, "kernel": 3, "padding": 1}}, "batch_norm", "relu", {"max_pool2d": 2},
                   {"conv2d": {"out": 6, "kernel": 3}}, "relu", {"max_pool2d": 2}, "flatten", {"linear": 8}, "relu",
                   {"linear": 3}], [1, 10, 10], 4,
                  lambda: nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                                        nn.Conv2d(4, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(6, 8),
                                        nn.ReLU(), nn.Linear(8, 3))),
    "mlp": ([{"mlp": {"widths": [6, 5], "classes": 3, "activation": "tanh"}}], [2, 4], 3,
            lambda: nn.Sequential(nn.Flatten(), nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 5), nn.Tanh(),
                                  nn.Linear(5, 3))),
    "lenet5": ([{"lenet5": {"classes": 3, "padding": 0}}], [1, 18, 17], 2, LeNet5),
    "resnet8": ([{"resnet8": {"classes": 3, "width": 4}}], [3, 8, 8], 3, lambda: small_resnet(1, 4, 3)),
    "resnet20": ([{"resnet20": {"classes": 3, "width": 2}}], [3, 8, 8], 3, lambda: small_resnet(3, 2, 3)),
}


def make_input(name, batch, shape):
    if name == "embedding":
        return torch.randint(0, 6, (batch, *shape))
    return torch.randn(batch, *shape)


def randomise(model):
    """Every parameter away from its special first values: a bias of 0 or a scale of 1 would hide mistakes."""
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            parameter.copy_(0.4 * torch.randn_like(parameter) + (1 if "bn" in name else 0))


def make(name, layers, shape, batch, build):
    torch.manual_seed(sum(map(ord, name)))
    model = build().train()
    randomise(model)
    x = make_input(name, batch, shape)
    if x.is_floating_point():
        x.requires_grad_()
    tensors = {f"parameter/{key}": value.detach().clone() for key, value in model.named_parameters()}
    y = model(x)
    g = torch.randn_like(y)
    (y * g).sum().backward()
    tensors |= {"input": x.detach(), "output": y.detach(), "output_gradient": g}
    if x.grad is not None:
        tensors["input_gradient"] = x.grad
    tensors |= {f"gradient/{key}": value.grad for key, value in model.named_parameters()}
    tensors |= {f"buffer_after/{key}": value for key, value in model.named_buffers()}
    metadata = {"layers": json.dumps(layers), "input_shape": json.dumps(shape),
                "loss": "sum(output*output_gradient)"}
    save_file({key: value.contiguous() for key, value in tensors.items()}, FOLDER / f"{name}.safetensors", metadata)


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (layers, shape, batch, build) in CASES.items():
        make(name, layers, shape, batch, build)


if __name__ == "__main__":
    main()
