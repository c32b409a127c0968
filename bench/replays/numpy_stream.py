"""The numbers that ``numpy.random.default_rng(SEED).integers(0, N)`` draws, without numpy: PCG64, Lemire's bounds.

O'Neill, "PCG" (2014); Lemire, "Fast random integer generation in an interval" (2019); numpy's SeedSequence.
"""

from collections.abc import Iterator

_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_32, _64, _128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1


def numpy_stream(seed: int) -> Iterator[int]:
    """32-bit numbers, the low half of each 64-bit one first. ``seed`` is below 2 ** 32."""
    words = _state(seed)
    begin, step = words[0] << 64 | words[1], (words[2] << 64 | words[3]) << 1 & _128 | 1
    state = ((step + begin) * _MULTIPLIER + step) & _128
    while True:
        state = (state * _MULTIPLIER + step) & _128
        mixed, turn = (state >> 64 ^ state) & _64, state >> 122
        drawn = (mixed >> turn | mixed << (-turn & 63)) & _64
        yield drawn & _32
        yield drawn >> 32


def bounded(stream: Iterator[int], below: int) -> int:
    """A number from 0 to below ``below``, each as likely as any other."""
    least = (1 << 32) % below
    while True:
        product = next(stream) * below
        if product & _32 >= least:
            return product >> 32


def _state(seed: int) -> list[int]:
    """Four 64-bit words of a seed."""
    pool = _pool(seed)
    hash_, out = 0x8B51F9DD, []
    for n in range(8):
        value = pool[n % 4] ^ hash_
        hash_ = hash_ * 0x58F38DED & _32
        value = value * hash_ & _32
        out.append(value ^ value >> 16)
    return [out[n] | out[n + 1] << 32 for n in range(0, 8, 2)]


def _pool(seed: int) -> list[int]:
    hash_ = 0x43B0D7E5

    def hashed(value: int) -> int:
        nonlocal hash_
        value ^= hash_
        hash_ = hash_ * 0x931E8875 & _32
        value = value * hash_ & _32
        return value ^ value >> 16

    pool = [hashed(seed), hashed(0), hashed(0), hashed(0)]
    for source in range(4):
        for target in range(4):
            if source != target:
                mixed = (0xCA01F9DD * pool[target] - 0x4973F715 * hashed(pool[source])) & _32
                pool[target] = mixed ^ mixed >> 16
    return pool
