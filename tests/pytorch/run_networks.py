"""The data sets and networks of make_run_trajectories.py: a layer list of the job file, and by hand the torch modules
that it must mean."""
import numpy
from make_layer_oracles import Branches, LeNet5, Reshape, Residual, small_resnet
from run_dropout import PhiloxDropout
from torch import cat, nn

TRAIN_ROWS, TEST_ROWS = 44, 20
CLASSES = 7

rng = numpy.random.default_rng(20)


def normal(*shape, kind=numpy.float32):
    return lambda rows: (0.3 + rng.standard_normal((rows, *shape))).astype(kind)


def integers(end, *shape, kind=numpy.int64):
    return lambda rows: rng.integers(0, end, (rows, *shape)).astype(kind)


def labels_with_gaps(end, *shape):
    """A third of the labels is -100: they do not count."""
    return lambda rows: numpy.where(rng.random((rows, *shape)) < 1 / 3, -100, rng.integers(0, end, (rows, *shape)))


# name -> (inputs, targets), each a function of the number of rows.
DATA_SETS = {
    "vectors": (normal(12), integers(CLASSES)),
    "regression": (normal(12), normal(3)),
    "binary": (normal(12), integers(2, 3, kind=numpy.uint8)),
    "signals": (normal(3, 12, kind=numpy.float64), integers(CLASSES, kind=numpy.int32)),
    "images": (normal(4, 8, 8), integers(CLASSES)),
    "colours": (normal(3, 8, 8), integers(3)),
    "volumes": (normal(2, 4, 6, 4), integers(CLASSES)),
    "maps": (normal(2, 6, 6), labels_with_gaps(4, 6, 6)),
    "bytes": (integers(256, 1, 16, 16, kind=numpy.uint8), integers(3)),
    "tokens": (integers(11, 6, kind=numpy.int32), integers(CLASSES, kind=numpy.uint8)),
}
NORMALISED = {"bytes", "colours", "regression"}


def make_data_sets():
    """{data set: {"x_train": array, ...}}."""
    made = {}
    for name, (x, y) in DATA_SETS.items():
        made[name] = {}
        for part, rows in (("train", TRAIN_ROWS), ("test", TEST_ROWS)):
            made[name] |= {f"x_{part}": x(rows), f"y_{part}": y(rows)}
    return made


def mlp(activation, module, outputs=CLASSES, data="vectors"):
    return (data, [{"linear": 16}, activation, {"linear": outputs}],
            lambda: nn.Sequential(nn.Linear(12, 16), module, nn.Linear(16, outputs)))


# name -> (data set, layers of the job file, the same by torch modules)
NETWORKS = {
    "mlp": mlp("relu", nn.ReLU()),
    "leaky_relu": mlp({"leaky_relu": 0.2}, nn.LeakyReLU(0.2)),
    "gelu": mlp("gelu", nn.GELU()),
    "gelu_tanh": mlp({"gelu": "tanh"}, nn.GELU(approximate="tanh")),
    "silu": mlp("silu", nn.SiLU()),
    "sigmoid": mlp("sigmoid", nn.Sigmoid()),
    "tanh": mlp("tanh", nn.Tanh()),
    "softplus": mlp({"softplus": {"beta": 2.0, "threshold": 1.5}}, nn.Softplus(2.0, 1.5)),
    "elu": mlp({"elu": 0.7}, nn.ELU(0.7)),
    "regression": mlp("tanh", nn.Tanh(), 3, "regression"),
    "binary": mlp("tanh", nn.Tanh(), 3, "binary"),
    "dropout": ("vectors", [{"linear": 16}, "relu", {"dropout": 0.3}, {"linear": CLASSES}],
                lambda: nn.Sequential(nn.Linear(12, 16), nn.ReLU(), PhiloxDropout(0.3, node=2),
                                      nn.Linear(16, CLASSES))),
    "dropout_conv": ("images",
                     [{"conv2d": {"out": 4, "kernel": 3, "stride": 2}}, "relu", {"dropout": 0.1}, "flatten",
                      {"dropout": 0.5}, {"linear": CLASSES}],
                     lambda: nn.Sequential(nn.Conv2d(4, 4, 3, 2), nn.ReLU(), PhiloxDropout(0.1, node=2), nn.Flatten(),
                                           PhiloxDropout(0.5, node=4), nn.Linear(36, CLASSES))),
    "dropout_residual": ("vectors",
                         [{"residual": {"body": [{"linear": 9}, {"dropout": 0.3}],
                                        "shortcut": [{"linear": 9}, {"dropout": 0.2}]}},
                          "relu", {"dropout": 0.1}, {"linear": CLASSES}],
                         lambda: nn.Sequential(
                             Residual(nn.Sequential(nn.Linear(12, 9), PhiloxDropout(0.3, node=1)),
                                      nn.Sequential(nn.Linear(12, 9), PhiloxDropout(0.2, node=3))),
                             nn.ReLU(), PhiloxDropout(0.1, node=6), nn.Linear(9, CLASSES))),
    "conv1d": ("signals",
               [{"conv1d": {"out": 6, "kernel": 3, "padding": 2, "dilation": 2, "groups": 3}}, "relu",
                {"max_pool1d": {"kernel": 3, "stride": 2, "padding": 1}}, {"conv1d": {"out": 4, "kernel": 2}}, "tanh",
                {"avg_pool1d": {"kernel": 2, "stride": 1}}, {"adaptive_avg_pool1d": 3}, "flatten", {"linear": CLASSES}],
               lambda: nn.Sequential(nn.Conv1d(3, 6, 3, padding=2, dilation=2, groups=3), nn.ReLU(),
                                     nn.MaxPool1d(3, 2, 1), nn.Conv1d(6, 4, 2), nn.Tanh(), nn.AvgPool1d(2, 1),
                                     nn.AdaptiveAvgPool1d(3), nn.Flatten(), nn.Linear(12, CLASSES))),
    "conv2d": ("images",
               [{"conv2d": {"out": 6, "kernel": 3, "padding": "same", "groups": 2}}, "relu", {"max_pool2d": 2},
                {"conv2d": {"out": 6, "kernel": 3, "padding": 1, "stride": [1, 2], "bias": False}}, "relu",
                {"avg_pool2d": {"kernel": 2, "padding": 1, "count_include_pad": False}},
                {"adaptive_avg_pool2d": [2, 1]}, "flatten", {"linear": CLASSES}],
               lambda: nn.Sequential(nn.Conv2d(4, 6, 3, padding="same", groups=2), nn.ReLU(), nn.MaxPool2d(2),
                                     nn.Conv2d(6, 6, 3, (1, 2), 1, bias=False), nn.ReLU(),
                                     nn.AvgPool2d(2, padding=1, count_include_pad=False),
                                     nn.AdaptiveAvgPool2d((2, 1)), nn.Flatten(), nn.Linear(12, CLASSES))),
    "conv3d": ("volumes",
               [{"conv3d": {"out": 4, "kernel": [2, 3, 2], "padding": 1}}, "relu", {"max_pool3d": 2},
                {"avg_pool3d": {"kernel": [1, 2, 1]}}, {"adaptive_avg_pool3d": 1}, "flatten", {"linear": CLASSES}],
               lambda: nn.Sequential(nn.Conv3d(2, 4, (2, 3, 2), padding=1), nn.ReLU(), nn.MaxPool3d(2),
                                     nn.AvgPool3d((1, 2, 1)), nn.AdaptiveAvgPool3d(1), nn.Flatten(),
                                     nn.Linear(4, CLASSES))),
    "conv_transpose2d": ("vectors",
                         [{"linear": 32}, "relu", {"reshape": [2, 4, 4]},
                          {"conv_transpose2d": {"out": 3, "kernel": 3, "stride": 2, "padding": 1, "output_padding": 1}},
                          "tanh", {"max_pool2d": 2}, {"flatten": {"start_dim": 1, "end_dim": -1}}, {"linear": CLASSES}],
                         lambda: nn.Sequential(nn.Linear(12, 32), nn.ReLU(), Reshape(2, 4, 4),
                                               nn.ConvTranspose2d(2, 3, 3, 2, 1, 1), nn.Tanh(), nn.MaxPool2d(2),
                                               nn.Flatten(), nn.Linear(48, CLASSES))),
    "batch_norm1d": ("signals",
                     [{"batch_norm1d": {"momentum": 0.3}}, {"conv1d": {"out": 4, "kernel": 3, "bias": False}},
                      {"batch_norm": {"eps": 0.001}}, "relu", "flatten", {"linear": {"out": 8, "bias": False}},
                      {"batch_norm1d": {"affine": False}}, "tanh", {"linear": CLASSES}],
                     lambda: nn.Sequential(nn.BatchNorm1d(3, momentum=0.3), nn.Conv1d(3, 4, 3, bias=False),
                                           nn.BatchNorm1d(4, eps=0.001), nn.ReLU(), nn.Flatten(),
                                           nn.Linear(40, 8, bias=False), nn.BatchNorm1d(8, affine=False), nn.Tanh(),
                                           nn.Linear(8, CLASSES))),
    "batch_norm2d": ("images",
                     [{"conv2d": {"out": 4, "kernel": 3, "stride": 2, "bias": False}}, {"batch_norm2d": {}}, "relu",
                      "flatten", {"linear": CLASSES}],
                     lambda: nn.Sequential(nn.Conv2d(4, 4, 3, 2, bias=False), nn.BatchNorm2d(4), nn.ReLU(),
                                           nn.Flatten(), nn.Linear(36, CLASSES))),
    "batch_norm3d": ("volumes",
                     [{"conv3d": {"out": 3, "kernel": 2, "bias": False}}, {"batch_norm3d": {}}, "relu", "flatten",
                      {"linear": CLASSES}],
                     lambda: nn.Sequential(nn.Conv3d(2, 3, 2, bias=False), nn.BatchNorm3d(3), nn.ReLU(), nn.Flatten(),
                                           nn.Linear(135, CLASSES))),
    "layer_norm": ("signals", [{"layer_norm": 2}, "flatten", {"linear": 9}, {"layer_norm": {"eps": 0.001}}, "relu",
                               {"linear": CLASSES}],
                   lambda: nn.Sequential(nn.LayerNorm([3, 12]), nn.Flatten(), nn.Linear(36, 9),
                                         nn.LayerNorm(9, eps=0.001), nn.ReLU(), nn.Linear(9, CLASSES))),
    "group_norm": ("images", [{"conv2d": {"out": 4, "kernel": 3, "stride": 2}}, {"group_norm": 2}, "relu", "flatten",
                              {"linear": CLASSES}],
                   lambda: nn.Sequential(nn.Conv2d(4, 4, 3, 2), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(),
                                         nn.Linear(36, CLASSES))),
    "embedding": ("tokens", [{"embedding": {"count": 11, "dim": 4, "padding_idx": 2}},
                             {"linear": {"out": 3, "each_position": True}}, "tanh", "flatten", {"linear": CLASSES}],
                  lambda: nn.Sequential(nn.Embedding(11, 4, padding_idx=2), nn.Linear(4, 3), nn.Tanh(), nn.Flatten(),
                                        nn.Linear(18, CLASSES))),
    "residual": ("vectors", [{"residual": [{"linear": 12}, "tanh"]},
                             {"residual": {"body": [{"linear": 9}, "tanh"], "shortcut": [{"linear": 9}]}},
                             {"linear": CLASSES}],
                 lambda: nn.Sequential(Residual(nn.Sequential(nn.Linear(12, 12), nn.Tanh())),
                                       Residual(nn.Sequential(nn.Linear(12, 9), nn.Tanh()),
                                                nn.Sequential(nn.Linear(12, 9))),
                                       nn.Linear(9, CLASSES))),
    "branches": ("vectors", [{"branches": {"paths": [[{"linear": 5}, "relu"], [{"linear": 4}]]}},
                             {"branches": {"paths": [[{"linear": 8}], ["tanh", {"linear": 8}]], "join": "add"}},
                             {"linear": CLASSES}],
                 lambda: nn.Sequential(
                     Branches(lambda results: cat(results, 1), nn.Sequential(nn.Linear(12, 5), nn.ReLU()),
                              nn.Sequential(nn.Linear(12, 4))),
                     Branches(sum, nn.Sequential(nn.Linear(9, 8)), nn.Sequential(nn.Tanh(), nn.Linear(9, 8))),
                     nn.Linear(8, CLASSES))),
    "dense": ("maps", [{"conv2d": {"out": 5, "kernel": 3, "padding": 1}}, "relu", {"conv2d": {"out": 4, "kernel": 1}}],
              lambda: nn.Sequential(nn.Conv2d(2, 5, 3, padding=1), nn.ReLU(), nn.Conv2d(5, 4, 1))),
    "lenet5": ("bytes", [{"lenet5": {"classes": 3, "padding": 0}}], LeNet5),
    "resnet8": ("colours", [{"resnet8": {"classes": 3, "width": 4}}], lambda: small_resnet(1, 4, 3)),
}
