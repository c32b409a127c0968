"""Counts that reach Civo late, and what each does to a pool: every interleaving of two workers' calls in the stand-in.

Usage: python bench/chaos/late_counts.py. One worker raises a pool, gives one of several nodes back, or its only node;
the other raises the pool in the middle: before the first one's last request is written, once it is written, or before
it arrives though its connection was cut at its deadline. Prints, by call and moment, in how many interleavings Civo
took a node to reach a lower count, and how many nodes at most. A gate lets nothing through once the other worker has
acted.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / part) for part in ("world", "stand_ins")]

from civo_server import CLUSTER, Civo  # noqa: E402
from small_cloud import world  # noqa: E402

from pilotlight.adapters.call_timeout import Deadline  # noqa: E402
from pilotlight.adapters.pools.civo.pools import CivoPools  # noqa: E402
from pilotlight.errors import Conflict, PilotlightError, Unsure  # noqa: E402
from pilotlight.ports.clouds import Gate  # noqa: E402

T = TypeVar("T")
Act = Callable[[], None]

POOL, MOST = "one", 3
BEFORE, AFTER, LATE = "before it is written", "once it is written", "after its deadline"
RAISE, ONE, ONLY = "raise by one", "give one of several back", "give the only node back"


class Api:
    """``CivoApi`` without the network. ``meanwhile`` is done at its moment of the change, or of the count of 0."""

    def __init__(self, civo: Civo, moment: str = "", meanwhile: Act = lambda: None, *, lowering: bool = False) -> None:
        self._civo, self._moment, self._meanwhile, self._lowering = civo, moment, meanwhile, lowering
        self.late: list[Act] = []

    def get(self, path: str, shape: type[T], **_: str) -> T:
        """Read."""
        return msgspec.convert(self._civo.answer("GET", path, None)[1], shape)

    def get_once(self, _: Deadline, path: str, shape: type[T]) -> T:
        """Read."""
        return self.get(path, shape)

    def put(self, _: Deadline, path: str, body: Mapping[str, Any], shape: type[T], gate: Gate) -> T:
        """Change."""
        return msgspec.convert(self._change("PUT", path, body, gate, lowers=body["count"] == 0), shape)

    def delete(self, _: Deadline, path: str, gate: Gate) -> None:
        """Delete."""
        self._change("DELETE", path, None, gate, lowers=False)

    def _change(self, method: str, path: str, body: Any, gate: Gate, *, lowers: bool) -> Any:
        ours = lowers == self._lowering
        self._at(BEFORE, ours)
        gate()
        self._at(AFTER, ours)
        if ours and self._moment == LATE:
            self.late.append(lambda: _sent(self._civo, method, path, body))
            raise Unsure("cut at its deadline")
        return _sent(self._civo, method, path, body)

    def _at(self, moment: str, ours: bool) -> None:
        if ours and moment == self._moment:
            self._meanwhile()


def _sent(civo: Civo, method: str, path: str, body: Any) -> Any:
    return civo.answer(method, path, body)[1]


class Case(NamedTuple):
    """A pool of ``nodes``, the call that may be late, when the other worker acts, and the size that it asks for."""

    call: str
    nodes: int
    moment: str
    other: int

    def taken(self) -> int:
        """Nodes that Civo took by itself, to reach a count."""
        here = world()
        civo = Civo(here, decrements=False)
        here.launch(POOL, self.nodes)
        acted: list[int] = []

        def meanwhile() -> None:
            acted.append(self.other)
            CivoPools(Api(civo), CLUSTER, civo.ids(), here.clock).grow(POOL, self.other)  # type: ignore[arg-type]

        def gate(size: int = 0) -> None:
            if acted:
                raise Conflict("another worker has the step")

        api = Api(civo, self.moment, meanwhile, lowering=self.call == ONLY)
        pools = CivoPools(api, CLUSTER, civo.ids(), here.clock)  # type: ignore[arg-type]
        try:
            if self.call == RAISE:
                pools.grow(POOL, self.nodes + 1, gate=gate)
            else:
                pools.release(POOL, "n1", gate=gate)
        except PilotlightError:
            pass
        if self.moment == LATE:
            meanwhile()
            for land in api.late:
                land()
        return sum(max(0, there - count) for count, there in civo.lowered)


def cases() -> Iterator[Case]:
    """Every interleaving: pools of up to three nodes, and another worker that wants up to two more than there are."""
    for call, moment, nodes, more in product((RAISE, ONE, ONLY), (BEFORE, AFTER, LATE), range(MOST + 1), (0, 1, 2)):
        if call == RAISE or (nodes == 1 if call == ONLY else nodes > 1):
            yield Case(call, nodes, moment, nodes + more)


def main() -> None:
    """Count, and print a table."""
    logging.disable()  # A count that is not lowered is a warning.
    print(f"{'call':<26}{'the other acts':<24}{'interleavings':>14}{'took nodes':>12}{'at most':>9}")
    for call, moment in product((RAISE, ONE, ONLY), (BEFORE, AFTER, LATE)):
        taken = [case.taken() for case in cases() if (case.call, case.moment) == (call, moment)]
        print(f"{call:<26}{moment:<24}{len(taken):>14}{sum(t > 0 for t in taken):>12}{max(taken):>9}")


if __name__ == "__main__":
    main()
