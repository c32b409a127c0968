"""Zones in which spot of a type is soon taken by Compute Engine's own word: the method ``advice.capacity``.

What it estimates as uptime is the least that most instances of spot will run, told in steps up to an hour (Compute
Engine's "View the availability of Spot VMs"). An hour says nothing beyond it; less says that most are taken within one.
Where v1 refuses, the beta is asked: v1's document has the same method, and Google's own skill
``compute-spot-capacity-advice`` says that it refuses spot. How likely an instance is to be had is told too: no decision
goes by it, for a refusal does.
"""

from collections.abc import Sequence

import msgspec

from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.pools.gke.google_rest import READ_S, GoogleRest
from pilotlight.adapters.pools.gke.spot_prices import ADDED
from pilotlight.errors import BadRequest, Denied, Forbidden
from pilotlight.facts.offers.cloud_shop import ToldPrices
from pilotlight.units import HOUR, Seconds

RIGHT = "compute.advice.capacity"


class _Scores(msgspec.Struct, frozen=True, rename="camel"):
    estimated_uptime: str = ""  # Seconds, as "600s".


class _Recommendation(msgspec.Struct, frozen=True):
    scores: _Scores = _Scores()


class _Advice(msgspec.Struct, frozen=True):
    recommendations: tuple[_Recommendation, ...] = ()


def with_odds(api: GoogleRest, project: str, region: str, told: ToldPrices, places: Sequence[str]) -> ToldPrices:
    """What was told, with those of ``places``, each "type/zone", where most spot is taken within an hour."""
    found: list[str] = []
    refused = told.refused
    for place in places:
        name, _, zone = place.partition("/")
        if name.startswith(ADDED):
            continue
        try:
            uptime_s = _uptime_s(api, project, region, name, zone)
        except Forbidden as no:
            refused += (f"{RIGHT} is refused, so where spot is soon taken is learnt by losing it: {no}",)
            break
        except Denied:  # It knows no such type there.
            continue
        if uptime_s is not None and uptime_s < HOUR:
            found.append(place)
    return msgspec.structs.replace(told, soon_taken=tuple(found), refused=refused)


def _uptime_s(api: GoogleRest, project: str, region: str, name: str, zone: str) -> Seconds | None:
    asked = {
        "instanceProperties": {"scheduling": {"provisioningModel": "SPOT"}},
        "instanceFlexibilityPolicy": {"instanceSelections": {"pool": {"machineTypes": [name]}}},
        "distributionPolicy": {
            "targetShape": "ANY_SINGLE_ZONE",
            "zones": [{"zone": f"projects/{project}/zones/{zone}"}],
        },
        "size": 1,
    }
    where, body = f"projects/{project}/regions/{region}/advice/capacity", msgspec.json.encode(asked)
    with Deadline(READ_S) as deadline:
        try:
            told = api.ask(deadline, "POST", f"/compute/v1/{where}", _Advice, body).recommendations
        except BadRequest:
            told = api.ask(deadline, "POST", f"/compute/beta/{where}", _Advice, body).recommendations
    said = told[0].scores.estimated_uptime.removesuffix("s") if told else ""
    return float(said) if said.replace(".", "", 1).isdecimal() else None
