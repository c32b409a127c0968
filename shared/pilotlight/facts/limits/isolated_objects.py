"""Objects that an unexpected error is set down to, and what is known of such errors."""

from datetime import datetime
from typing import Literal

import msgspec

SetApartKind = Literal["pod", "node", "hold", "rescue", "workload"]

NAMELESS = 2
"""The second degree of being set apart: not even an object's name is looked at."""


class SetApart(msgspec.Struct, frozen=True, kw_only=True):
    """One object that is not judged, because judging it raised an ``error`` that nobody foresaw.

    ``name`` is a pod's uid, a node's name, a hold's id, a rescue's instance, a Workload's "namespace/name"; ``called``
    is what people call it. ``where`` is the file that raised, as "decide/money/node_end". In the first ``degree`` what
    a tenant or a cloud wrote of it is left out, in the second its name too.
    """

    kind: SetApartKind
    name: str
    called: str
    error: str
    where: str
    degree: int = 1

    @property
    def about(self) -> str:
        """As people are told of it: "pod ml/train"."""
        return f"{self.kind} {self.called}"


class OpenIsolation(msgspec.Struct, frozen=True, kw_only=True):
    """An object that is set apart since a moment, ``last`` at another, and of which people were told; ``by`` billing or
    by other looks."""

    by: Literal["look", "billing"]
    error: str
    since: datetime
    last: datetime
    fingerprint: str


class Isolations(msgspec.Struct, frozen=True, kw_only=True):
    """Of one cluster: errors so far by kind and place ("pod decide/money/node_end"), and what is set apart now, by what
    it is called."""

    counts: dict[str, int] = {}
    open: dict[str, OpenIsolation] = {}
