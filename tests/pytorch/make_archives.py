"""Makes tests/data/pt2/NAME.pt2 (torch.export archives) and NAME.safetensors (what PyTorch computes with them).

Usage: python tests/pytorch/make_archives.py [NAME...]    (torch 2.11, safetensors)

Each NAME.safetensors holds two batches, b = 0 and 1, of different sizes (of one size for a model with a fixed batch):
`b/input/I` for each input of the call, and for float32 and float64, T = f32 and f64, of a fresh copy of the model:
`b/T/output` (the first returned tensor), `b/output_gradient` (of the loss sum(output * output_gradient)),
`b/T/gradient/PARAMETER` (absent where PyTorch gives none) and `b/T/buffer/BUFFER` after the step. Active dropout has
the probability 0 in all models but those whose name begins with "dropout": their archives are only read.
"""
import copy
import pathlib
import sys

import torch
from safetensors.torch import save_file
from small_archive import save_small
from torch import nn
from torch.nn import functional as F

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "pt2"
BATCH = torch.export.Dim("batch", min=2, max=4096)


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        y += x
        return self.relu(y)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(2, 6, 3, stride=2, padding=1), nn.ReLU6(inplace=True))
        self.block = Residual(6)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        y = F.max_pool2d(self.block(self.stem(x)), 2)
        return self.head(F.adaptive_avg_pool2d(y, 1).flatten(1))


class Block(nn.Module):
    """Attention with the batch size in its views, a mask, and a sum of positions."""

    def __init__(self, width=8, heads=2):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x, mask):
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, vocabulary=11, width=8, length=5):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.start = nn.Parameter(torch.randn(1, 1, width))
        self.block = Block(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids, mask):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        x = torch.cat([self.start.expand(ids.shape[0], -1, -1), x], 1)
        mask = torch.cat([torch.ones(ids.shape[0], 1, dtype=torch.bool), mask], 1)
        return self.head(self.block(x, mask) / ids.shape[0] ** 0.5)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        left, right = self.head(y[:, -1]).chunk(2, 1)
        return torch.cat([right, left.sin()], 1), h


class FrozenTeacher(nn.Module):
    """A block without gradients, a running mean that is a plain buffer, and a parameter without use."""

    def __init__(self):
        super().__init__()
        self.teacher = nn.Linear(4, 4)
        self.student = nn.Linear(4, 4)
        self.unused = nn.Parameter(torch.randn(3))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        y = self.student(x)
        with torch.no_grad():
            target = torch.tanh(self.teacher(x) + y)
            self.mean.mul_(0.9).add_(target.mean(0), alpha=0.1)
        return y * target


class Autocast(nn.Module):
    def __init__(self, enabled):
        super().__init__()
        self.body, self.head = nn.Linear(4, 5), nn.Linear(5, 3)
        self.enabled = enabled

    def forward(self, x):
        y = self.body(x)
        with torch.autocast("cpu", enabled=self.enabled):
            z = torch.tanh(y) * y
        return self.head(y + z)


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(3, 5), nn.Linear(2, 5)
        self.register_buffer("scale", torch.linspace(0.5, 2, 5), persistent=False)

    def forward(self, x, *, extra):
        y = self.left(x) + self.right(extra)
        parts = list(y.split([2, 3], dim=1))
        z = torch.zeros(x.shape[0], 5, dtype=x.dtype)
        z[:, 1:3] = parts[0]
        z[:, 0].fill_(2.0)
        return {"joined": torch.cat([z, parts[1]], 1) * torch.cat([self.scale, torch.tensor([1.0, 2.0, 3.0])])}


class ChannelsLast(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, groups=1).to(memory_format=torch.channels_last)
        self.view = nn.Parameter(torch.randn(6, 5)[1:3].t())

    def forward(self, x):
        return self.conv(x.contiguous(memory_format=torch.channels_last)).mean((2, 3))[:, :2] @ self.view.t()


class DigitsNet(nn.Module):
    """For jobs on the digits: batch norm, attention with dropout, two outputs."""
    def __init__(self):
        super().__init__()
        self.patches, self.norm = nn.Conv2d(1, 8, 4, stride=4, bias=False), nn.BatchNorm2d(8)
        self.qkv, self.out, self.head = nn.Linear(8, 24), nn.Linear(8, 8), nn.Linear(8, 10)

    def forward(self, x):
        tokens = F.relu(self.norm(self.patches(x))).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(tokens).chunk(3, dim=-1)
        tokens = tokens + self.out(F.scaled_dot_product_attention(q, k, v, dropout_p=0.1))
        pooled = tokens.mean(dim=1)
        return self.head(F.dropout(pooled, 0.1)), pooled


def mlp(p=0.0):
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Dropout(p, inplace=p > 0),
                         nn.Linear(8, 3))


class Flattened(nn.Module):
    """The batch size as a number: in a view, in a division, and merged with another dimension."""

    def __init__(self):
        super().__init__()
        self.body = mlp()

    def forward(self, x):
        y = self.body(x.reshape(x.shape[0] * 2, -1))
        return y.view(x.shape[0], 2, 3).mean(1) / x.shape[0]


def real(*shape):
    return lambda rows: torch.randn(rows, *shape, dtype=torch.float64)


def tokens(rows):
    return torch.randint(0, 11, (rows, 5))


def mask(rows):
    return torch.rand(rows, 5) > 0.3


DYNAMIC = {0: BATCH}
# name: (model, makers of positional inputs, makers of keyword inputs, batch sizes or one fixed size, options)
CASES = {
    "mlp": (mlp, [real(4)], {}, [5, 3], {}),
    "dropout_mlp": (lambda: mlp(0.25), [real(4)], {}, [5, 3], {}),
    "flattened": (Flattened, [real(8)], {}, [4, 7], {}),
    "conv_net": (ConvNet, [real(2, 12, 12)], {}, [4, 3], {}),
    "transformer": (Transformer, [tokens, mask], {}, [4, 3], {}),
    "lstm": (Lstm, [real(5, 3)], {}, [4, 3], {}),
    "frozen_teacher": (FrozenTeacher, [real(4)], {}, [4, 3], {}),
    "autocast_off": (lambda: Autocast(False), [real(4)], {}, [4, 3], {}),
    "autocast_on": (lambda: Autocast(True), [real(4)], {}, [4, 3], {}),
    "functional_conv_net": (ConvNet, [real(2, 12, 12)], {}, [4, 3], {"functional": True}),
    "channels_last": (ChannelsLast, [real(3, 6, 6)], {}, [4, 3], {}),
    "two_inputs": (TwoInputs, [real(3)], {"extra": real(2)}, [4, 3], {}),
    "fixed_transformer": (Transformer, [tokens, mask], {}, [4], {}),
    "digits": (DigitsNet, [real(1, 28, 28)], {}, [4, 3], {"archive_only": True}),
    "fixed_digits": (DigitsNet, [real(1, 28, 28)], {}, [32], {"archive_only": True}),
}


def cast(tensor, dtype):
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def first_tensor(output):
    if isinstance(output, dict):
        output = next(iter(output.values()))
    return output[0] if isinstance(output, tuple) else output


def run(model, args, kwargs, dtype, prefix, stored):
    model = copy.deepcopy(model).to(dtype)
    output = first_tensor(model(*[cast(a, dtype) for a in args], **{k: cast(a, dtype) for k, a in kwargs.items()}))
    key = prefix + "output_gradient"
    if key not in stored:
        stored[key] = torch.randn(output.shape, dtype=torch.float64)
    (output * stored[key].to(dtype)).sum().backward()
    prefix += "f32/" if dtype == torch.float32 else "f64/"
    stored[prefix + "output"] = output.detach()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            stored[prefix + "gradient/" + name] = parameter.grad
    for name, buffer in model.named_buffers():
        stored[prefix + "buffer/" + name] = buffer


def make(name):
    torch.manual_seed(sum(name.encode()))
    build, positional, keyword, sizes, options = CASES[name]
    model = build().train()
    is_dynamic = len(sizes) > 1
    args = tuple(cast(maker(sizes[0]), torch.float32) for maker in positional)
    kwargs = {key: cast(maker(sizes[0]), torch.float32) for key, maker in keyword.items()}
    parameters = list(torch.export.export(model, args, kwargs).module_call_graph[0].signature.forward_arg_names)
    shapes = {parameter: DYNAMIC for parameter in parameters} if is_dynamic else None
    program = torch.export.export(copy.deepcopy(model), args, kwargs, dynamic_shapes=shapes)
    if options.get("functional"):
        program = program.run_decompositions()
    if options.get("archive_only"):
        return save_small(program, FOLDER / f"{name}.pt2")
    torch.export.save(program, FOLDER / f"{name}.pt2")
    stored = {}
    for b, rows in enumerate(sizes):
        inputs = [maker(rows) for maker in positional]
        named = {key: maker(rows) for key, maker in keyword.items()}
        for i, tensor in enumerate([*inputs, *named.values()]):
            stored[f"{b}/input/{i}"] = tensor
        if name.startswith("dropout"):
            continue
        for dtype in (torch.float32, torch.float64):
            run(model, inputs, named, dtype, f"{b}/", stored)
    save_file({key: tensor.detach().clone().contiguous() for key, tensor in stored.items()},
              FOLDER / f"{name}.safetensors")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for chosen in sys.argv[1:] or CASES:
        make(chosen)
