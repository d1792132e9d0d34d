"""Makers of random inputs: functions of the number of rows, and the classes that all reference models tell apart."""
import torch

CLASSES = 5
VOCABULARY = 13


def real(*shape):
    return lambda rows: torch.randn(rows, *shape)


def image(size=32):
    return real(3, size, size)


def tokens(length):
    return lambda rows: torch.randint(2, VOCABULARY, (rows, length))


def mask(length, dtype=torch.int64):
    """The first two places are always read."""
    def make(rows):
        kept = torch.rand(rows, length) > 0.3
        kept[:, :2] = True
        return kept.to(dtype)
    return make
