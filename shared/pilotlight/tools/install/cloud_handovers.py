"""The clouds whose groups can be taken over and handed back, by the address of their pools."""

from collections.abc import Mapping

from pilotlight.adapters.clocks import SystemClock
from pilotlight.ports.clouds import CloudAccount
from pilotlight.tools.install.handover import Handover


def handover_at(address: str, names: Mapping[str, str], environ: Mapping[str, str], role: str = "") -> Handover | None:
    """The handover of a cloud's groups, by pool; None where the cloud has no such groups, or no address.

    They are read and set as ``role`` where one is named.
    """
    kind, _, where = address.partition(":")
    account = CloudAccount(names=names, clock=SystemClock(), token=lambda: "", environ=environ, role=role)
    if kind == "asg":
        from pilotlight.tools.install import asg_handover

        return asg_handover.open_handover(where, account)
    if kind == "gke":
        from pilotlight.tools.install import gke_handover

        return gke_handover.open_handover(where, account)
    return None
