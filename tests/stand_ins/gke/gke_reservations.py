"""Zonal reservations of the local project: instances of its groups run on them, and other projects' too."""

from typing import Any

from gke_answers import PROJECT, SITE, ZONE, Refused
from google_documents import Call

from pilotlight.errors import NoCapacity

FULL = "No available resources in specified reservations"


class Reserved:
    """A part of the project. ``reservations`` are fields by name; ``others`` use so many of each, ``on`` has which
    instance runs on which. ``elsewhere`` are reservations of another project, which shares them; ``gone_projects``
    are none."""

    def __init__(self) -> None:
        self.reservations: dict[str, dict[str, Any]] = {}
        self.elsewhere: dict[str, dict[str, Any]] = {}
        self.others: dict[str, int] = {}
        self.on: dict[str, str] = {}
        self.gone_projects: set[str] = set()

    def reserve(self, name: str, count: int, *, required: bool = True, machine: str = "one", **fields: Any) -> None:
        """A reservation of so many machines."""
        self.reservations[name] = {
            "name": name,
            "zone": f"{SITE}/projects/{PROJECT}/zones/{ZONE}",
            "status": "READY",
            "specificReservationRequired": required,
            "specificReservation": {"count": str(count), "instanceProperties": {"machineType": machine}},
            **fields,
        }

    def used(self, name: str, there: set[str]) -> int:
        """How many machines of a reservation are in use."""
        return self.others.get(name, 0) + sum(where == name and one in there for one, where in self.on.items())

    def consume(self, instance: str, pool: dict[str, Any], there: set[str]) -> None:
        """An instance takes one, as its pool's affinity says. Raises ``NoCapacity`` where it must have one."""
        affinity = pool.get("config", {}).get("reservationAffinity", {})
        kind, values = affinity.get("consumeReservationType", ""), affinity.get("values", [])
        if kind == "NO_RESERVATION":
            return
        for name, one in {**self.reservations, **self.elsewhere}.items():
            by_name = kind == "SPECIFIC_RESERVATION"
            wanted = name in [value.rpartition("/")[2] for value in values]
            usable = wanted if by_name else not one["specificReservationRequired"]
            told = one["specificReservation"]
            room = int(told.get("assuredCount", told["count"])) - self.used(name, there)
            if usable and one["status"] == "READY" and room > 0:
                self.on[instance] = name
                return
        if kind in ("SPECIFIC_RESERVATION", "ANY_RESERVATION_THEN_FAIL"):
            raise NoCapacity(FULL)

    def listed(self, call: Call, there: set[str]) -> list[dict[str, Any]]:
        """The reservations of a project in a zone."""
        if call.path["project"] in self.gone_projects:
            raise Refused(404, "notFound", f"The resource 'projects/{call.path['project']}' was not found")
        every = self.reservations if call.path["project"] == PROJECT else self.elsewhere
        return [
            {**one, "specificReservation": {**one["specificReservation"], "inUseCount": str(self.used(name, there))}}
            for name, one in every.items()
            if one["zone"].endswith(f"/{call.path['zone']}")
        ]

    def consumed(self, instance: str) -> dict[str, Any]:
        """What an instance says of the reservation that it runs on."""
        name = self.on.get(instance)
        where = f"//compute.googleapis.com/projects/{PROJECT}/zones/{ZONE}/reservations/{name}"
        return {"resourceStatus": {"reservationConsumptionInfo": {"consumedReservation": where}}} if name else {}
