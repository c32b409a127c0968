"""The State port over its backends. What they share is the contract suite, and this limit."""

from pilotlight.errors import BadInput

LARGEST = 300 * 1024
"""Bytes of the largest value: below what every backend takes (DynamoDB items end at 400 KB)."""


def refuse_large(key: str, value: bytes) -> None:
    """Raise ``BadInput``, naming the key, for a value over the limit."""
    if len(value) > LARGEST:
        raise BadInput(f"state {key}: {len(value):,} bytes is over the limit of {LARGEST:,}")
