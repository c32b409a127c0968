"""Rights that each method of Google's needs, as its reference says, and what an account of the project has of them."""

from collections.abc import Mapping
from typing import Any

from gke_answers import Refused
from google_documents import Call

NEEDS: Mapping[str, str] = {
    "compute.advice.capacity": "compute.advice.capacity",
    "compute.advice.capacityHistory": "compute.advice.capacityHistory",
    "container.projects.locations.clusters.get": "container.clusters.get",
    "container.projects.locations.clusters.nodePools.setAutoscaling": "container.clusters.update",
    "container.projects.locations.clusters.nodePools.setManagement": "container.clusters.update",
    "container.projects.locations.operations.get": "container.operations.get",
    "compute.instanceGroupManagers.get": "compute.instanceGroupManagers.get",
    "compute.instanceGroupManagers.listManagedInstances": "compute.instanceGroupManagers.list",
    "compute.instanceGroupManagers.listErrors": "compute.instanceGroupManagers.get",
    "compute.instanceGroupManagers.createInstances": "compute.instanceGroupManagers.update",
    "compute.instanceGroupManagers.deleteInstances": "compute.instanceGroupManagers.update",
    "compute.instances.list": "compute.instances.list",
    "compute.machineTypes.aggregatedList": "compute.machineTypes.list",
    "compute.reservations.list": "compute.reservations.list",
    "compute.zoneOperations.get": "compute.zoneOperations.get",
}
"""By method; asking which rights one has needs none."""


class Rights:
    """A part of the project: ``granted`` are an account's rights, None for all that is asked for."""

    def __init__(self) -> None:
        self.granted: set[str] | None = None

    def see_rights(self, call: Call) -> None:
        """Raises ``Refused`` where the account may not."""
        right = NEEDS.get(call.method)
        if right is not None and self.granted is not None and right not in self.granted:
            raise Refused(403, "forbidden", f"Required '{right}' permission for '{call.path}'")

    def _cloudresourcemanager_projects_testIamPermissions(self, call: Call, asked: Any) -> dict[str, Any]:
        found = [one for one in asked["permissions"] if self.granted is None or one in self.granted]
        return {"permissions": found} if found else {}
