"""What a cluster learns of its new nodes until pods work there, where it is told, and what images cost it."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import pytest
from rich.console import Console
from stage import Stage

from pilotlight.decide.offers.first_work import HALF_LIFE_S
from pilotlight.errors import Denied, Unavailable
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.first_work import FirstWork, ImageLoad
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.deps import Deps
from pilotlight.flow.figures import of_cluster
from pilotlight.flow.records import ledger
from pilotlight.ports.state import State
from pilotlight.tools.advice.image_worth import WEEK_S, image_worths
from pilotlight.tools.glance.look_at_cluster import glance
from pilotlight.tools.glance.pool_row import PoolRow
from pilotlight.tools.report.tables.pools_table import images_table
from pilotlight.tools.report.texts.glance_text import lines
from pilotlight.units import clock_seconds
from pilotlight.world.faults import Faults

PULL_S = 160.0


class Site(NamedTuple):
    """What a glance needs of a deployment."""

    deps: Deps
    alerts: State


def taught(runs: int = 4, **rules: Any) -> Stage:
    """A cluster on which a job came every hour, each to a new node on which it pulled its image first."""
    on = Stage(faults=Faults(pulls={"train": PULL_S}), **rules)
    for run in range(runs):
        work(on, f"p{run}")
        on.minutes(60)
    return on


def work(on: Stage, name: str, image: str = "train") -> None:
    """A pod with the image is created, and seen."""
    made, now = shape(gpu=GpuRequest(count=1)), on.world.clock.now()
    pod = PodDemand(uid=f"u-{name}", namespace="ml", name=name, shape=made, image=image, created_at=now)
    on.world.submit(pod, 900.0)
    on.event(pod)


def memory(on: Stage) -> Memory:
    """What it remembers."""
    return ledger.recall(on.deps.state, "c").memory


def figures(on: Stage) -> dict[str, float]:
    """Seconds of pool one's new nodes, by step, as the page has them."""
    family = "pilotlight_first_work_seconds"
    return {one.labels[2]: one.value for one in of_cluster(on.deps) if one.family == family and one.labels[1] == "one"}


def test_each_step_is_told_apart_on_the_page_and_at_a_glance() -> None:
    """Boot, device plugin, pull and start: as figures by pool and step, in JSON, and as a line for people."""
    on = taught()
    assert figures(on) == {"boot": 180.0, "plugin": 0.0, "pull": PULL_S, "start": 0.0}
    seen = glance(Site(on.deps, on.deps.state))  # type: ignore[arg-type]
    (one,) = json.loads(msgspec.json.encode(seen))["new_nodes"]
    assert (one["pool"], one["boot_s"], one["pull_s"], one["images"]) == ("one", 180.0, PULL_S, ["train"])
    console = Console(width=160)
    with console.capture() as captured:
        for line in lines(seen):
            console.print(line)
    assert "a new node of one works after: boot 3 min, device plugin 0 s, image pull 3 min, start 0 s" in captured.get()


def test_labels_of_the_page_are_those_of_the_policy() -> None:
    """However many images tenants run, the page has one line a pool and step."""
    on = taught(1)
    images = {f"one evil/{n}": ImageLoad(at=0, uses=9.0, pulls=(1.0, 2.0, 3.0)) for n in range(64)}
    told = replace_first_work(on, FirstWork(images=images, boots={"gone": (1.0, 2.0, 3.0)}))
    labels = {one.labels for one in of_cluster(told.deps) if one.family == "pilotlight_first_work_seconds"}
    assert labels == {("c", "one", "pull")}


def replace_first_work(on: Stage, known: FirstWork) -> Stage:
    """The stage with another memory of its new nodes."""
    was = ledger.recall(on.deps.state, "c")
    ledger.remember(on.deps.state, "c", was, msgspec.structs.replace(was.memory, first_work=known))
    return on


@pytest.mark.parametrize("error", [Denied("not granted"), Unavailable("down")], ids=["refused", "silent"])
def test_a_cluster_that_does_not_tell_of_pulls_stops_no_look(error: Any) -> None:
    """The pods are counted, and their pull stays unknown."""
    on = Stage(faults=Faults(pulls={"train": PULL_S}))
    work(on, "p")
    on.fail("pulls", error)
    on.minutes(10)
    assert memory(on).first_work.images["one train"].pulls == ()
    assert on.failures_left == 0


def test_a_pod_that_begins_at_once_costs_no_call() -> None:
    """Its image was there: that counts as a use, and its Events are not asked for."""
    on = Stage(faults=Faults(pulls={"train": 2.0}))
    work(on, "p")
    on.fail("pulls", Unavailable("down"))
    on.minutes(10)
    (load,) = memory(on).first_work.images.values()
    assert (round(load.uses), load.pulled, load.starts) == (1, 0.0, (2.0,))
    assert on.failures_left == 1


def test_a_node_with_the_image_idles_for_what_a_pull_costs_too() -> None:
    """Its verdict names boot and pull, and it stays for longer than a boot alone would let it."""
    pulls = Faults(pulls={"train": PULL_S})
    on = Stage(faults=pulls, value_of_wait=Decimal(2), classes={"batch": ClassPolicy(gpu_models="any")})
    replace_first_work(on, memory(taught()).first_work)
    work(on, "next")
    on.minutes(33)
    (why,) = [node.why for node in glance(Site(on.deps, on.deps.state)).nodes if node.verdict == "keep"]  # type: ignore[arg-type]
    assert why == "idle for 12 min of 17 min (break-even: a 3 min boot and 3 min of image pull, a wait at $2.00/h)"


def test_where_nodes_have_homes_a_pod_comes_to_the_one_with_its_image() -> None:
    """Of two idle nodes it is given the second, and works there at once."""
    pools = {"one": PoolPolicy(instance_type="one", max=20, taints=(BIRTH_TAINT,))}
    on = Stage(placement="homes", pools=pools, on_cloud={}, faults=Faults(pulls={"other": PULL_S, "train": PULL_S}))
    for name in ("other", "train"):
        work(on, name, name)
    on.minutes(22)
    assert {node.name: node.images for node in on.deps.cluster.observe().nodes} == {"n1": ("other",), "n2": ("train",)}
    work(on, "next")
    (job,) = on.world.running.values()
    assert ([place.node.id for place in job.placement], job.pull_s) == (["n2"], 0.0)


def test_a_pull_costs_what_its_node_and_its_pod_do_meanwhile() -> None:
    """A week's pulls x (price + price of waiting); each way saves no more than all of it."""
    policy = Stage(value_of_wait=Decimal(5)).deps.policy
    now = Stage().world.clock.now()
    steady = 20 * HALF_LIFE_S / WEEK_S / 0.6931471805599453
    load = ImageLoad(
        at=round(clock_seconds(now)),
        uses=steady,
        pulled=steady,
        late=steady / 4,
        pulls=(350.0, 360.0, 370.0),
        size=2**33,
    )
    known = Memory(first_work=FirstWork(images={"one train": load}))
    (one,) = image_worths(policy, known, {"one": Decimal(1)}, clock_seconds(now))
    assert (one.pulls_a_week, round(one.usd_a_week, 2)) == (20.0, Decimal("12.00"))
    saved = {way.way.split()[0]: round(way.usd_a_week, 2) for way in one.ways}
    assert [way.pulls_a_week for way in one.ways] == [5.0, 20.0, 20.0]
    assert all(way.usd_a_week <= one.usd_a_week for way in one.ways)
    assert saved["pre-pull"] == Decimal("3.00")
    (later,) = image_worths(policy, known, {"one": Decimal(1)}, clock_seconds(now + timedelta(seconds=HALF_LIFE_S)))
    assert later.pulls_a_week == 10.0, "what is not used any more is worth less"


def test_tags_that_are_pulled_once_are_told_by_their_repository() -> None:
    """Where each commit builds an image only a lazy snapshotter helps: nothing can have the next one sooner."""
    policy, now = Stage(value_of_wait=Decimal(5)).deps.policy, 1e9
    load = ImageLoad(at=round(now), uses=1.0, pulled=8.0, pulls=(350.0,), size=2**33)
    images = {f"one acme.com/ci:{commit}": load for commit in range(3)} | {"one acme.com/rare:1": load}
    (one,) = image_worths(policy, Memory(first_work=FirstWork(images=images)), {"one": Decimal(1)}, now)
    assert (one.image, one.pull_s) == ("acme.com/ci:*", 350.0)
    assert [way.pulls_a_week for way in one.ways] == [0.0, 0.0, one.pulls_a_week]
    assert one.pulls_a_week == round(3 * 8 * 0.6931, 1)


def test_images_stand_below_their_pools() -> None:
    """The table names image, size, pull and what each way saves; without pulls there is none."""
    policy, now = Stage(value_of_wait=Decimal(5)).deps.policy, 1e9
    load = ImageLoad(at=round(now), uses=9.0, pulled=9.0, late=3.0, pulls=(350.0, 360.0, 370.0), size=2**33)
    worths = tuple(
        image_worths(policy, Memory(first_work=FirstWork(images={"one train": load})), {"one": Decimal(1)}, now)
    )
    row = PoolRow(
        pool="one", size=1, on_the_way=0, standby=0, reserved=0, unused=0, instance_type="one",
        capacity_type="on-demand", usd_per_hour=Decimal(1), paid=Decimal(1), mode="act", most=2, owner="pilotlight",
    )  # fmt: skip
    console = Console(width=220)
    with console.capture() as captured:
        for part in images_table("c", [msgspec.structs.replace(row, images=worths)]):
            console.print(part)
    said = captured.get()
    assert all(word in said for word in ("train", "8.0", "6 min", "a lazy snapshotter (SOCI, stargz, GKE"))
    assert all(word in said for word in ("$1.25, 13 min", "$3.74, 37 min", "$3.50, 35 min")), "dollars and waits a week"
    assert list(images_table("c", [row])) == []
