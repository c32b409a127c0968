"""Adapters of the State port: values under keys, each with a version.

``dynamodb``, ``firestore``, ``sqlite`` and ``memory`` are the backends. What they share is one contract suite, and what
is here. A write names the version that it read and loses to another's; one that was perhaps made is an ``Unsure``.
The records of flow call it.
"""

import os

from pilotlight.errors import StoreFault
from pilotlight.ports.state import LARGEST


def too_large(key: str, value: bytes) -> StoreFault:
    """The error for a value over the limit, which names the key."""
    return StoreFault(f"state {key}: {len(value):,} bytes is over the limit of {LARGEST:,}")


def new_version() -> int:
    """A version that no write had before.

    Drawn, not counted: a key deleted and made again must not match an old version. ``os.urandom``, because a forked
    worker would repeat the draws of a seeded generator.
    """
    return int.from_bytes(os.urandom(8)) >> 2 | 1
