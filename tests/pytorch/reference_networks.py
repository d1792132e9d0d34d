"""Networks of plain torch.nn."""
import torch
from reference_inputs import CLASSES, VOCABULARY, mask, real, tokens
from torch import nn
from torch.nn import functional as F


class RecurrentClassifier(nn.Module):
    def __init__(self, recurrent, width):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, 6)
        self.recurrent = recurrent
        self.head = nn.Linear(width, CLASSES)

    def forward(self, ids):
        hidden, _ = self.recurrent(self.tokens(ids))
        return self.head(hidden[:, -1])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, 16, padding_idx=0)
        self.positions = nn.Parameter(0.1 * torch.randn(7, 16))
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, ids, ignored):
        hidden = self.body(self.tokens(ids) + self.positions, src_key_padding_mask=ignored)
        return self.head(hidden.mean(1))


class SequenceToSequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, source, target):
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.head(self.body(source, target, tgt_mask=causal, tgt_is_causal=True))


def double_conv(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs),
                         nn.ReLU(inplace=True), nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
                         nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([double_conv(3, 6), double_conv(6, 12)])
        self.bottom = double_conv(12, 16)
        self.grow = nn.ModuleList([nn.ConvTranspose2d(16, 12, 2, stride=2),
                                   nn.Upsample(scale_factor=2, mode="nearest")])
        self.up = nn.ModuleList([double_conv(24, 12), double_conv(18, 6)])
        self.head = nn.Conv2d(6, CLASSES, 1)

    def forward(self, x):
        skipped = []
        for block in self.down:
            x = block(x)
            skipped.append(x)
            x = F.max_pool2d(x, 2)
        x = self.bottom(x)
        for grow, block in zip(self.grow, self.up):
            x = block(torch.cat([skipped.pop(), grow(x)], 1))
        return self.head(x)


def autoencoder():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 24), nn.SELU(), nn.Linear(24, 6), nn.Tanh(), nn.Linear(6, 24),
                         nn.SELU(), nn.Linear(24, 64), nn.Sigmoid(), nn.Unflatten(1, (1, 8, 8)))


class ConvAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 6, 3, stride=2, padding=1), nn.ELU(),
                                     nn.InstanceNorm2d(6, affine=True), nn.Conv2d(6, 12, 3, stride=2, padding=1),
                                     nn.PReLU(12))
        self.decoder = nn.Sequential(nn.ConvTranspose2d(12, 6, 3, stride=2, padding=1, output_padding=1),
                                     nn.Hardswish(), nn.ConvTranspose2d(6, 1, 4, stride=2, padding=1), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x))


class MixerBlock(nn.Module):
    def __init__(self, patches, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across = nn.Sequential(nn.Linear(patches, 12), nn.GELU(), nn.Linear(12, patches))
        self.along = nn.Sequential(nn.Linear(width, 24), nn.GELU(), nn.Linear(24, width))

    def forward(self, x):
        x = x + self.across(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.along(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 12, 4, stride=4)
        self.body = nn.Sequential(MixerBlock(16, 12), MixerBlock(16, 12), nn.LayerNorm(12))
        self.head = nn.Linear(12, CLASSES)

    def forward(self, x):
        return self.head(self.body(self.patches(x).flatten(2).transpose(1, 2)).mean(1))


def signal_net():
    return nn.Sequential(nn.Conv1d(2, 8, 7, stride=2, padding=3, bias=False), nn.BatchNorm1d(8), nn.LeakyReLU(0.1),
                         nn.MaxPool1d(2), nn.Conv1d(8, 12, 3, dilation=2, padding="same"), nn.GroupNorm(3, 12),
                         nn.SiLU(), nn.AvgPool1d(2), nn.Conv1d(12, 12, 3, groups=12, padding=1), nn.Mish(),
                         nn.AdaptiveMaxPool1d(2), nn.Flatten(), nn.Linear(24, CLASSES))


def volume_net():
    return nn.Sequential(nn.Conv3d(1, 6, 3, padding=1, bias=False), nn.BatchNorm3d(6), nn.ReLU(inplace=True),
                         nn.MaxPool3d(2), nn.Conv3d(6, 12, 3, groups=2), nn.Softplus(), nn.ConvTranspose3d(12, 6, 2),
                         nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(6, CLASSES))


class Siamese(nn.Module):
    """One tower for two inputs, and the distance of what it makes of them."""

    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 6))
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, left, right):
        a, b = self.tower(left), self.tower(right)
        distance = (a - b).pow(2).sum(1).add(1e-6).sqrt()
        return self.scale * distance, F.cosine_similarity(a, b, dim=1)


class TemporalConvNet(nn.Module):
    """Causal, dilated, with weight normalisation."""

    def __init__(self):
        super().__init__()
        norm = nn.utils.parametrizations.weight_norm
        self.convs = nn.ModuleList(norm(nn.Conv1d(2 if i == 0 else 8, 8, 3, dilation=2**i)) for i in range(3))
        self.first = nn.Conv1d(2, 8, 1)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x):
        y = x
        for i, conv in enumerate(self.convs):
            y = F.relu(conv(F.pad(y, (2 * 2**i, 0)))) + (self.first(y) if i == 0 else y)
        return self.head(y[:, :, -1])


class GraphNet(nn.Module):
    """Two rounds of messages along a fixed adjacency, normalised by degree."""

    def __init__(self):
        super().__init__()
        edges = (torch.rand(6, 6) > 0.5).float()
        edges = ((edges + edges.t()) > 0).float()
        self.register_buffer("adjacency", edges / edges.sum(1, keepdim=True).clamp(min=1))
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, nodes):
        hidden = torch.relu(self.first(torch.einsum("ij,bjf->bif", self.adjacency, nodes)))
        hidden = torch.relu(self.second(self.adjacency @ hidden))
        return F.log_softmax(self.head(hidden.amax(1)), dim=1)


CASES = {
    "lstm": (lambda: RecurrentClassifier(nn.LSTM(6, 8, num_layers=2, batch_first=True), 8), [tokens(6)], {}),
    "gru": (lambda: RecurrentClassifier(nn.GRU(6, 8, batch_first=True, bidirectional=True), 16), [tokens(6)], {}),
    "rnn": (lambda: RecurrentClassifier(nn.RNN(6, 8, batch_first=True), 8), [tokens(6)], {}),
    "transformer_encoder": (Encoder, [tokens(7), lambda rows: ~mask(7, torch.bool)(rows)], {}),
    "transformer": (SequenceToSequence, [real(5, 8), real(4, 8)], {}),
    "unet": (UNet, [real(3, 16, 16)], {}),
    "autoencoder": (autoencoder, [real(1, 8, 8)], {}),
    "conv_autoencoder": (ConvAutoencoder, [real(1, 16, 16)], {}),
    "mixer": (Mixer, [real(3, 16, 16)], {}),
    "signal_net": (signal_net, [real(2, 48)], {}),
    "temporal_conv_net": (TemporalConvNet, [real(2, 20)], {}),
    "volume_net": (volume_net, [real(1, 8, 8, 8)], {}),
    "siamese": (Siamese, [real(10), real(10)], {}),
    "graph_net": (GraphNet, [real(6, 4)], {}),
}
