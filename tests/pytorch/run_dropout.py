"""Dropout with the masks that src/program/dropout.h describes, computed by NumPy."""
import numpy
import torch
from torch import nn

UINT32 = numpy.uint64(0xFFFFFFFF)


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def philox(key, counter):
    """Philox4x32-10 (Salmon et al., SC 2011) of counters [4, count]: words [4, count]."""
    c0, c1, c2, c3 = (word.astype(numpy.uint64) for word in counter)
    key0, key1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        product0 = c0 * numpy.uint64(0xD2511F53)
        product1 = c2 * numpy.uint64(0xCD9E8D57)
        high0, high1 = product0 >> numpy.uint64(32), product1 >> numpy.uint64(32)
        c0, c1, c2, c3 = (high1 ^ c1 ^ numpy.uint64(key0), product1 & UINT32, high0 ^ c3 ^ numpy.uint64(key1),
                          product0 & UINT32)
        key0, key1 = (key0 + 0x9E3779B9) % 2**32, (key1 + 0xBB67AE85) % 2**32
    return numpy.stack([c0, c1, c2, c3])


class PhiloxDropout(nn.Module):
    """Element e of row r takes word e % 4 of philox(key, {e / 4, r, node | micro_batch << 16, step}), with the key
    seed ^ FNV-1a("dropout"), and is kept where the word's upper 24 bits, as a number below 1, are at least p."""

    def __init__(self, p, node):
        super().__init__()
        self.p, self.node = p, node
        self.seed = self.step = self.micro_batch = self.first_row = 0

    def set_position(self, seed, step, micro_batch, first_row):
        """first_row: the row of the global batch that the next input begins with."""
        self.seed, self.step, self.micro_batch, self.first_row = seed, step, micro_batch, first_row

    def kept(self, rows, row_elements):
        groups = (row_elements + 3) // 4
        row, group = numpy.divmod(numpy.arange(rows * groups), groups)
        place = numpy.full_like(row, self.node | self.micro_batch << 16)
        counter = numpy.stack([group, row + self.first_row, place, numpy.full_like(row, self.step)])
        words = philox(self.seed ^ fnv1a("dropout"), counter)
        uniform = (words.T.reshape(rows, 4 * groups)[:, :row_elements] >> numpy.uint64(8)) / 2.0**24
        return uniform >= self.p

    def forward(self, x):
        if not self.training:
            return x
        kept = torch.from_numpy(self.kept(x.shape[0], x[0].numel())).reshape(x.shape)
        return torch.where(kept, x / (1 - self.p), torch.zeros_like(x))
