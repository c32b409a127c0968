"""Reservations of Google's: what a pool may run on at no further cost, and what is full is not asked for."""

from collections.abc import Iterator
from typing import Any

import pytest
from civo_server import Fault
from gke_answers import SITE, WHERE, ZONE, error
from gke_project import Project
from gke_server import Gke
from gke_site import serving
from small_cloud import world

from pilotlight.adapters.pools import gke as gke_cloud
from pilotlight.adapters.pools.gke import google_rest
from pilotlight.errors import NoCapacity
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.offers.paid_capacity import Paid
from pilotlight.ports.clouds import CloudAccount

NAME_KEY = "compute.googleapis.com/reservation-name"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project where the policy calls its pool reserved."""
    monkeypatch.setattr(google_rest, "PAUSES_S", (0.0, 0.0))
    gke = Gke(world())
    with serving(gke) as environ:
        account = CloudAccount(gke.names(), gke.world.clock, str, environ, reserved={"one": "one"})
        pools = gke_cloud.open_pools(WHERE, account)
        assert pools is not None
        yield Project(gke, pools)


def takes(gke: Gke, kind: str, *names: str) -> None:
    """The pool's affinity, as GKE tells it."""
    affinity: dict[str, Any] = {"consumeReservationType": kind}
    if names:
        affinity |= {"key": NAME_KEY, "values": list(names)}
    machine = gke.world.fleet.pools["one"].instance_type
    gke.extra["one"] = {"config": {"machineType": machine, "reservationAffinity": affinity}}


def reserved(gke: Gke, name: str, count: int, **fields: Any) -> None:
    """A reservation of the pool's machine type."""
    gke.reserve(name, count, machine=gke.world.fleet.pools["one"].instance_type, **fields)


def paid(here: Project) -> list[tuple[str, int, int]]:
    """By reservation what it has in all, and free."""
    return [(one.name, one.count, one.free) for one in here.pool().paid]


def test_a_pool_that_is_bound_by_name_has_all_of_its_reservation(here: Project) -> None:
    """Its count, what nobody uses of it, its zone and its end; which instances run on it is told too."""
    takes(here.gke, "SPECIFIC_RESERVATION", "r-1")
    reserved(here.gke, "r-1", 4, deleteAtTime="2026-12-24T06:00:00.000-08:00")
    reserved(here.gke, "r-2", 9)
    here.gke.others["r-1"] = 1
    here.pools.grow("one", 2)
    (one,) = here.pool().paid
    assert (one.name, one.count, one.free, one.zone) == ("r-1", 4, 1, ZONE)
    assert one.ends is not None
    assert one.ends.isoformat() == "2026-12-24T06:00:00-08:00"
    assert set(one.instances) == set(here.gke.world.nodes)


def test_a_full_reservation_is_not_asked_for_what_it_has_not(here: Project) -> None:
    """Its group would take the purchase on and try for ever: it is refused first, with the reason, and nothing sent."""
    takes(here.gke, "SPECIFIC_RESERVATION", "r-1")
    reserved(here.gke, "r-1", 2)
    here.gke.others["r-1"] = 1
    with pytest.raises(NoCapacity, match=r"takes reservations alone, in europe-west4-a: r-1 \(1 of 2 free\)"):
        here.pools.grow("one", 2)
    assert here.gke.changes() == []
    here.pools.grow("one", 1)
    assert (here.gke.world.launches, paid(here)) == (1, [("r-1", 2, 0)])


def test_what_is_yet_to_be_made_is_not_free(here: Project) -> None:
    """Google counts an instance as in use once it is there."""
    takes(here.gke, "SPECIFIC_RESERVATION", "r-1")
    reserved(here.gke, "r-1", 4)
    here.gke.slow = True
    here.pools.grow("one", 3)
    assert paid(here) == [("r-1", 4, 1)]
    with pytest.raises(NoCapacity):
        here.pools.grow("one", 5)
    here.gke.make()
    assert paid(here) == [("r-1", 4, 1)]


def test_a_pool_that_takes_what_is_open_counts_what_it_uses_and_what_is_free(here: Project) -> None:
    """It goes on at the price on demand: what others use of an open one is theirs, one by name alone is none of it."""
    takes(here.gke, "ANY_RESERVATION")
    reserved(here.gke, "open", 5, required=False)
    reserved(here.gke, "named", 7)
    here.gke.reserve("other-type", 9, required=False, machine="n2-standard-4")
    here.gke.others["open"] = 2
    here.pools.grow("one", 1)
    assert paid(here) == [("open", 3, 2)]
    here.pools.grow("one", 5)
    assert (here.gke.world.launches, paid(here)) == (5, [("open", 3, 0)])


def test_without_a_word_an_instance_takes_what_is_open(here: Project) -> None:
    """ "ANY_RESERVATION (default)", as Compute Engine's document says; with NO_RESERVATION it takes none."""
    reserved(here.gke, "open", 2, required=False)
    machine = here.gke.world.fleet.pools["one"].instance_type
    here.gke.extra["one"] = {"config": {"machineType": machine}}
    assert paid(here) == [("open", 2, 2)]
    takes(here.gke, "NO_RESERVATION")
    assert paid(here) == []


def test_a_pool_that_fails_beyond_what_is_open_is_bound_too(here: Project) -> None:
    """ANY_RESERVATION_THEN_FAIL: no purchase goes out that nothing is open for."""
    takes(here.gke, "ANY_RESERVATION_THEN_FAIL")
    with pytest.raises(NoCapacity, match="none that is ready"):
        here.pools.grow("one", 1)
    reserved(here.gke, "open", 1, required=False)
    here.pools.grow("one", 1)
    assert here.gke.world.launches == 1


READY: dict[str, tuple[dict[str, Any], list[tuple[str, int, int]]]] = {
    "one that is made": ({"status": "CREATING"}, []),
    "one that goes": ({"status": "DELETING"}, []),
    "one of which less can be used": (
        {"specificReservation": {"count": "4", "assuredCount": "3"}},
        [("r-1", 3, 3)],
    ),
    "one of a template": ({"specificReservation": {"count": "4"}}, [("r-1", 4, 4)]),
    "one of other GPUs": (
        {
            "specificReservation": {
                "count": "4",
                "instanceProperties": {
                    "machineType": "g4dn.xlarge",
                    "guestAccelerators": [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 2}],
                },
            }
        },
        [],
    ),
    "one of another zone": ({"zone": f"{SITE}/projects/acme-ml/zones/europe-west4-b"}, []),
}


@pytest.mark.parametrize(("fields", "told"), READY.values(), ids=READY)
def test_only_what_can_be_used_counts(here: Project, fields: dict[str, Any], told: list[tuple[str, int, int]]) -> None:
    """By status, by what is assured, by machine, GPUs and zone."""
    takes(here.gke, "SPECIFIC_RESERVATION", "r-1")
    here.gke.extra["one"]["config"]["accelerators"] = [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": "1"}]
    if "machineType" in fields.get("specificReservation", {}).get("instanceProperties", {}):
        machine = here.gke.world.fleet.pools["one"].instance_type
        fields["specificReservation"]["instanceProperties"]["machineType"] = machine
    reserved(here.gke, "r-1", 4, **fields)
    assert paid(here) == told


def test_a_reservation_that_another_project_shares_is_read_there(here: Project) -> None:
    """Named with its project; a block of a reservation is none that is read, so nothing is bought on it."""
    takes(here.gke, "SPECIFIC_RESERVATION", "projects/acme-shared/reservations/s-1")
    reserved(here.gke, "s-1", 6)
    here.gke.elsewhere["s-1"] = here.gke.reservations.pop("s-1")
    assert paid(here) == [("s-1", 6, 6)]
    takes(here.gke, "SPECIFIC_RESERVATION", "r-1/reservationBlocks/b-1")
    reserved(here.gke, "r-1", 6)
    assert paid(here) == []


def test_a_list_by_pages_is_read_whole(here: Project) -> None:
    """And asked for once a zone at a look, however many pools take from it."""
    takes(here.gke, "SPECIFIC_RESERVATION", "r-5")
    for n in range(6):
        reserved(here.gke, f"r-{n}", n)
    here.gke.paged = True
    assert paid(here) == [("r-5", 5, 5)]
    here.gke.paged, here.gke.calls[:] = False, []
    here.pools.describe()
    assert sum(method == "compute.reservations.list" for method, *_ in here.gke.calls) == 1


def test_without_the_right_to_see_it_nothing_is_paid_for(here: Project) -> None:
    """The look goes on: a reserved pool has no room then, and the look names the right."""
    takes(here.gke, "SPECIFIC_RESERVATION", "r-1")
    reserved(here.gke, "r-1", 4)
    here.gke.granted = {"container.clusters.get", "compute.instanceGroupManagers.get"}
    state: PoolState = here.pool()
    assert state.paid == tuple[Paid]()
    assert state.paid_unread.startswith("compute.reservations.list is refused, so nothing is bought on a reservation: ")
    assert (state.unread, state.rules is not None and state.rules.closed) == ("", "")


def test_reservations_that_do_not_answer_are_no_refusal(here: Project) -> None:
    """Nothing is paid for until they do; nobody is told of a blip."""
    takes(here.gke, "SPECIFIC_RESERVATION", "r-1")
    reserved(here.gke, "r-1", 4)
    here.gke.faults = [Fault((503, error(503, "backendError", "try again")), method="list") for _ in range(3)]
    state = here.pool()
    assert (state.paid, state.paid_unread) == ((), "")
    assert paid(here) == [("r-1", 4, 4)]


def test_a_pool_that_is_neither_bound_nor_reserved_asks_for_none(here: Project) -> None:
    """A look costs it no call."""
    reserved(here.gke, "open", 2, required=False)
    pools = {state.name for state in here.pools.describe()}
    calls = [path["zone"] for method, path, *_ in here.gke.calls if method == "compute.reservations.list"]
    assert len(pools) > 1
    assert calls == [ZONE]
