"""Node groups of EKS, read and changed by EKS's own API: a change of theirs made at Auto Scaling is undone by EKS.

Sizes and repair go by ``UpdateNodegroupConfig`` and its update ("Managed node groups", EKS's user guide). EKS makes
one update of a node group at a time.
"""

from collections.abc import Mapping
from uuid import uuid4

import msgspec

from pilotlight.adapters.aws_api.services import RestApi
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.errors import Denied, Unavailable
from pilotlight.ports.clouds import CALL_S, OPEN
from pilotlight.units import Seconds

LOOK_S: Seconds = 5
LOOKS = 120
"""An update of a node group is waited for so often."""
AT_WORK = ("CREATING", "UPDATING", "DELETING")
"""The states in which EKS changes a node group itself: an update replaces its nodes, whatever runs on them."""


class _Repair(msgspec.Struct, frozen=True):
    enabled: bool = False


class ManagedGroup(msgspec.Struct, frozen=True):
    """A node group as EKS tells it."""

    status: str = ""
    nodeRepairConfig: _Repair = _Repair()


class _Described(msgspec.Struct, frozen=True):
    nodegroup: ManagedGroup = ManagedGroup()


class _Error(msgspec.Struct, frozen=True):
    errorCode: str = ""
    errorMessage: str = ""


class _Update(msgspec.Struct, frozen=True):
    id: str = ""
    status: str = ""
    errors: tuple[_Error, ...] = ()


class _Updated(msgspec.Struct, frozen=True):
    update: _Update = _Update()


def read_node_group(api: RestApi, cluster: str, name: str) -> ManagedGroup:
    """A node group by its name."""
    return api.read(f"/clusters/{cluster}/node-groups/{name}", _Described).nodegroup


def update_node_group(api: RestApi, cluster: str, name: str, wanted: Mapping[str, object]) -> None:
    """Change it, until it is so. Raises ``Denied`` where EKS does not do it."""
    asked = {**wanted, "clientRequestToken": str(uuid4())}
    with Deadline(CALL_S) as deadline:
        path = f"/clusters/{cluster}/node-groups/{name}/update-config"
        update = api.change(deadline, path, _Updated, asked, OPEN).update
    for _ in range(LOOKS):
        if update.status != "InProgress":
            break
        api.sleep(LOOK_S)
        path = f"/clusters/{cluster}/updates/{update.id}?nodegroupName={name}"
        update = api.read(path, _Updated).update
    if update.status == "InProgress":
        raise Unavailable(f"EKS is still at update {update.id} of node group {name}; run it again later")
    if update.status != "Successful":
        why = "; ".join(f"{one.errorCode} {one.errorMessage}" for one in update.errors)[:240]
        raise Denied(f"EKS's update of node group {name}: {update.status}: {why or 'it does not say why'}")
