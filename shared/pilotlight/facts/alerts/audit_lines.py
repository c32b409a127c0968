"""Exported lines of an audit chain, its anchors outside the store, and the proof of whether it was tampered with."""

from datetime import datetime
from typing import Literal

import msgspec


class AuditLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One link as an export has it: ``hash`` is the SHA-256 of the bytes of ``link``, whose ``digest`` is that of the
    bytes of ``record``. ``record`` is null of a decision that was filed once more under a later link.
    """

    hash: str
    link: msgspec.Raw
    record: msgspec.Raw


class Anchor(msgspec.Struct, frozen=True, kw_only=True):
    """Head and count of a chain as they were told outside its store; ``at`` is None where a person typed it."""

    seq: int
    hash: str
    at: datetime | None = None


Tampering = Literal["edited", "cut", "moved", "added", "rewritten"]
"""``edited``: a record or its link is not what was written. ``cut``: it is missing. ``moved``: it stands elsewhere, or
twice. ``added``: it is in no link. ``rewritten``: a whole stretch was made anew, so that only an anchor shows it.
"""


class Tampered(msgspec.Struct, frozen=True, kw_only=True):
    """The first record of a chain that is wrong: its place, its id where it is known, and what shows it."""

    seq: int
    how: Tampering
    id: str
    why: str


class ChainProof(msgspec.Struct, frozen=True, kw_only=True):
    """A chain as it was read: its first and last place, the hash of the last, and the first that is wrong, if one is.

    ``expired`` are decisions and costs that the store keeps no longer, ``anchors`` those that hold, ``costs`` the links
    that say what a node came to.
    """

    first: int = 0
    last: int = 0
    head: str = ""
    expired: int = 0
    anchors: int = 0
    costs: int = 0
    tampered: Tampered | None = None
