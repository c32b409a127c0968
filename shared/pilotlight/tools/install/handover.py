"""The settings by which a cloud's groups keep themselves, as taking pools over and handing them back changes them."""

from collections.abc import Mapping
from typing import Protocol

from pilotlight.facts.limits.pool_handover import GroupState


class Handover(Protocol):
    """Settings of scaling of a cloud's groups, named as in ``pool_handover``. Raises ``Denied`` or ``Retry``."""

    def read(self) -> Mapping[str, GroupState]:
        """Every pool of the account's names that has a group."""
        ...

    def put(self, group: str, name: str, to: str) -> None:
        """Set one setting; empty takes it out. Repeating it is harmless."""
        ...
