"""A fault of a manifest, query or command before it reaches a cluster, with its fix."""

from typing import Literal

import msgspec


class Lint(msgspec.Struct, frozen=True, kw_only=True):
    """One fault. ``rule`` is stable; ``where`` is the file, with the object or the line in it. A ``warning`` may be
    meant so."""

    rule: str
    level: Literal["fault", "warning"]
    where: str
    what: str
    fix: str


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that rules know beside the files: GPUs of instance types by name, and the most GPUs that all pools may have
    (None where that is not known)."""

    gpus_of: dict[str, int] = {}
    most_gpus: int | None = None
