"""Names of ours at GKE: their beginning, digits of a step's hash, and digits that prove both.

An instance of ours is told by its name alone: another hand's may end in digits too, and is not ours to call off.
"""

import hashlib

LONGEST, HASH, PROOF = 63, 8, 4


def stem(base: str) -> str:
    """The beginning of names of ours: a group's base or a pool's name, or as much of it as leaves room."""
    return base[: LONGEST - HASH - PROOF - 1].rstrip("-")


def own_name(base: str, step: str) -> str:
    """The name of a step: the same for the same step, whoever sends it."""
    return _proven(f"{stem(base)}-{_digits(step, HASH)}")


def is_own(base: str, name: str) -> bool:
    """True where a name was made by a step, and of this base: another may go on where this one ends."""
    begins = f"{stem(base)}-"
    return name.startswith(begins) and name == _proven(name[:-PROOF]) and len(name) == len(begins) + HASH + PROOF


def _proven(name: str) -> str:
    return name + _digits(f"pilotlight/{name}", PROOF)


def _digits(of: str, count: int) -> str:
    return hashlib.sha256(of.encode()).hexdigest()[:count]
