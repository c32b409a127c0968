"""Pods without a GPU on the world's nodes: what stands in the way when a node is emptied."""

from collections.abc import Iterator, Mapping
from itertools import count

from pilotlight.errors import Busy
from pilotlight.facts.capacity import BoundPod
from pilotlight.units import Seconds


class Resident:
    """One such pod. ``blocks`` is why it would stop a drain, as the codec says it.

    ``guarded``: a disruption budget allows no eviction. ``takes_s`` is what it takes to stop, None for ever (a volume
    that does not detach). ``returns``: it bears every taint, and its controller has it back on the node at once.
    ``stays``: a DaemonSet's, or the kubelet's own.
    """

    def __init__(
        self,
        name: str,
        blocks: str = "",
        *,
        guarded: bool = False,
        takes_s: Seconds | None = 0.0,
        returns: bool = False,
        stays: bool = False,
        grace_s: Seconds = 30.0,
    ) -> None:
        self.name, self.blocks, self.guarded, self.takes_s = name, blocks, guarded, takes_s
        self.returns, self.stays, self.grace_s = returns, stays, grace_s
        self.uid = f"uid-{name}"
        self.ends_s: Seconds | None = None
        """When it is gone, once it was told to stop."""


class Residents:
    """All of them by node; whoever calls holds the world's lock. ``gone`` has the uids of those that stopped."""

    def __init__(self) -> None:
        self._on: dict[str, list[Resident]] = {}
        self._again = count(1)
        self.gone: list[str] = []

    def put(self, node: str, resident: Resident) -> None:
        """One is on a node."""
        self._on.setdefault(node, []).append(resident)

    @property
    def by_node(self) -> Mapping[str, list[Resident]]:
        """Those that were put on each node and are not gone."""
        return self._on

    def bound_pods(self, node: str, now_s: Seconds) -> Iterator[BoundPod]:
        """Those on a node, as an API server shows them."""
        for one in self.residents_on(node, now_s):
            yield BoundPod(
                uid=one.uid,
                namespace="web",
                name=one.name,
                daemonset=one.stays,
                blocks=one.blocks,
                grace_s=one.grace_s,
            )

    def residents_on(self, node: str, now_s: Seconds) -> list[Resident]:
        """Those on a node; who has stopped is gone, or back under another uid."""
        left = []
        for one in self._on.get(node, []):
            if one.ends_s is None or one.ends_s > now_s:
                left.append(one)
                continue
            self.gone.append(one.uid)
            if one.returns:
                one.uid, one.ends_s = f"uid-{one.name}-{next(self._again)}", None
                left.append(one)
        if node in self._on:
            self._on[node] = left
        return left

    def evict(self, uid: str, now_s: Seconds) -> bool:
        """Ask one to go; False where it is none of these. Raises ``Busy`` for a guarded one."""
        one = self._find(uid)
        if one is not None and one.guarded:
            raise Busy(f"PodDisruptionBudget {one.name} allows no disruption")
        return self.delete(uid, now_s)

    def delete(self, uid: str, now_s: Seconds) -> bool:
        """Have one go, whatever a disruption budget says."""
        one = self._find(uid)
        if one is not None and one.takes_s is not None and one.ends_s is None:
            one.ends_s = now_s + min(one.takes_s, one.grace_s)
        return one is not None

    def drain(self, node: str, now_s: Seconds) -> None:
        """Ask all but those that stay; every budget before the first goes. Raises ``Busy`` while any is left."""
        going = [one for one in self.residents_on(node, now_s) if not one.stays]
        if guarded := next((one for one in going if one.guarded), None):
            raise Busy(f"PodDisruptionBudget {guarded.name} allows no disruption")
        for one in going:
            self.delete(one.uid, now_s)
        if left := [one.name for one in self.residents_on(node, now_s) if not one.stays]:
            raise Busy(f"node {node}: {', '.join(left[:3])} still on it")

    def _find(self, uid: str) -> Resident | None:
        return next((one for those in self._on.values() for one in those if one.uid == uid), None)
