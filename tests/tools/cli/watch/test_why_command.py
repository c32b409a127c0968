"""pilotlight why by team, time and alert, with what would have changed the answer."""

import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from both_ways import served
from small_cloud import pod, world
from stage import MINUTE, Stage
from typer.testing import CliRunner

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import BadInput, Failed
from pilotlight.facts.alerts.delivery_records import Telling
from pilotlight.facts.decisions import Buy, Plan, Record
from pilotlight.facts.messages import Alert
from pilotlight.facts.money.bill import NodeCost
from pilotlight.facts.nodes.first_work import FirstWork, ImageLoad
from pilotlight.facts.place.pod_verdicts import PodGroup, Rejected
from pilotlight.facts.workload import Finding
from pilotlight.flow.billing import meter_nodes, node_costs
from pilotlight.flow.cycle.planning import preview
from pilotlight.flow.records import ledger
from pilotlight.state_schema.alert_records import PROOF
from pilotlight.state_schema.lease_records import FENCE, Fence
from pilotlight.tools.cli.main import build
from pilotlight.tools.glance.node_origin import origins
from pilotlight.tools.report.texts.why_text import origin_line
from pilotlight.tools.report.texts.would_change import would_change

BOUGHT = PodGroup(
    verdict="bought",
    pods=("nlp/a",),
    uids=("u",),
    where="t4/od",
    why="cheapest",
    team="nlp",
    usd_per_useful_hour=Decimal("0.50"),
    rejected=(
        Rejected(offering="a100/od", why="dearer", code="dearer", usd_per_useful_hour=Decimal("2.1")),
        Rejected(offering="l4/od", why="dearer", code="dearer", usd_per_useful_hour=Decimal("0.7")),
        Rejected(offering="t4/spot", why="nlp has 2 of 2 nodes", code="cap", usd_per_useful_hour=Decimal("0.2")),
        Rejected(offering="k80/od", why="it selects zone b", code="selector", usd_per_useful_hour=Decimal("0.3")),
        Rejected(offering="v100/od", why="it selects zone b", code="selector", usd_per_useful_hour=Decimal("3")),
    ),
)
REFUSED = PodGroup(
    verdict="refused", pods=("cv/b",), uids=("v",), where="", why="budget cv is spent", code="budget", team="ml"
)

GATED = (Finding(subject="cv/gated", code="scheduling-gated", message="waits for a gate", uid="g"),)


@pytest.fixture(autouse=True)
def _decisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A purchase of an hour ago with what it came to, a refusal of two days ago, and an alert of that."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("PILOTLIGHT_STATE", f"sqlite:{tmp_path / 'state.db'}")
    state = SqliteState(tmp_path / "state.db", SystemClock())
    now = state.now()
    for hours, group in ((48, REFUSED), (1, BOUGHT)):
        at = now - timedelta(hours=hours)
        record = Record(
            id=f"{hours:02d}-aa",
            cluster="local",
            flow="provision",
            trigger="t",
            at=at,
            status="open",
            plan=Plan(pods=(group,), findings=GATED if group is REFUSED else ()),
            steps=(),
        )
        ledger.close(state, record)
    cost = NodeCost(
        decision="01-aa",
        instance="i-1",
        node="gpu-1",
        pool="t4",
        instance_type="t4",
        capacity_type="on-demand",
        since=now,
        ended_at=now,
        paid_until=now,
        usd=Decimal("1.23"),
    )
    node_costs.put(state, "local", "d/i-1/0", cost, now)
    billed = msgspec.structs.replace(cost, billed_usd=Decimal("1.3"), source="civo")
    node_costs.put(state, "local", "d/i-1/0/billed-1", billed, now)
    alert = Alert(
        cluster="local",
        kind="refused",
        severity="warning",
        fingerprint="refused/1",
        what="w",
        why="y",
        decision="48-aa",
    )
    PROOF.put(state, "local/ops/1", Telling(channel="ops", alert=alert, status="told", since=now, at=now))


def why(*words: str) -> str:
    """What the command prints."""
    done = CliRunner().invoke(build(["why"]), ["why", *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout


@pytest.mark.parametrize(
    ("words", "pod", "not_pod"),
    [
        pytest.param(("--team", "nlp"), "nlp/a", "cv/b", id="a team"),
        pytest.param(("--team", "ml"), "cv/b", "nlp/a", id="a team that pays for another namespace"),
        pytest.param(("--team", "cv"), "cv/b", "nlp/a", id="a team that is its namespace, and is paid for by another"),
        pytest.param(("cv/gated",), "waits for a gate", "nlp/a", id="a pod that only a finding names"),
        pytest.param(("gated",), "waits for a gate", "nlp/a", id="the same without its namespace"),
        pytest.param(("--since", "3h"), "nlp/a", "cv/b", id="since"),
        pytest.param(("--until", "1d"), "cv/b", "nlp/a", id="until"),
        pytest.param(("refused/1",), "cv/b", "nlp/a", id="an alert, by its fingerprint"),
        pytest.param(("nlp/a", "--since", "2d"), "nlp/a", "cv/b", id="a pod within a time"),
    ],
)
def test_decisions_are_found(words: tuple[str, ...], pod: str, not_pod: str) -> None:
    """By who they are for, when they were made, and what was told of them."""
    said = why(*words)
    assert pod in said
    assert not_pod not in said


def test_a_pod_that_a_state_without_decisions_does_not_know_is_said_to_be_unknown(tmp_path: Path) -> None:
    """A pretend world that only ticked has set something up: nobody is sent to begin, or to ask why."""
    state = SqliteState(tmp_path / "other.db", SystemClock())
    FENCE.put(state, "local", Fence(fence=1, at=state.now()))
    with pytest.raises(Failed, match="nothing known about 'nlp/a'"):
        why("nlp/a", "--state", f"sqlite:{tmp_path / 'other.db'}")


def test_what_is_asked_for_wrongly_says_how_it_is_written() -> None:
    """Nothing asked, a time that is none, a team without a decision."""
    with pytest.raises(BadInput, match="--team"):
        why()
    with pytest.raises(BadInput, match="is no time"):
        why("--since", "yesterday")
    with pytest.raises(Failed, match="no decision of the last 30 days is for team 'nobody'; decisions are for ml, nlp"):
        why("--team", "nobody")
    with pytest.raises(Failed, match="no decision of the last 30 days was made since 1m, of cluster local"):
        why("--since", "1m")


def test_what_would_have_changed_it_is_said() -> None:
    """The nearest dearer offering by price, and the cheapest cheaper one that a cap or the pod itself ruled out."""
    assert list(would_change(BOUGHT)) == [
        "price: l4/od, below $0.50 per useful hour (it was $0.70)",
        "cap: t4/spot, but for this: nlp has 2 of 2 nodes",
        "label: k80/od, but for this: it selects zone b",
    ]
    assert list(would_change(REFUSED)) == ["cap: budget cv is spent"]
    assert "would have changed it: price: l4/od" in why("nlp/a")


def test_a_reason_of_a_decision_is_said_once() -> None:
    """Offerings with one reason share a line, and what would have changed it refers to that."""
    said = why("nlp/a")
    assert "    not k80/od ($0.30 per useful hour), v100/od ($3.00 per useful hour): it selects zone b" in said
    assert "    would have changed it: cap: t4/spot, but for its reason above" in said
    assert said.count("nlp has 2 of 2 nodes") == said.count("it selects zone b") == 1
    assert why("cv/b").count("budget cv is spent") == 1
    assert "reason above" not in why("cv/b")


@pytest.mark.parametrize("subject", ["nlp/a", "01-aa", "gpu-1", "i-1"])
def test_what_a_purchase_really_cost_stands_below_it(subject: str) -> None:
    """By the pod, the decision, the node or its instance: metered, and billed where a bill says so."""
    said = why(subject)
    assert "node gpu-1 came to $1.23, metered from" in said
    assert "node gpu-1 was billed $1.30 (civo)" in said
    assert [one["usd"] for one in json.loads(why(subject, "--json")) if "usd" in one] == ["1.23", "1.23"]
    assert "came to" not in why("cv/b")


def test_a_purchase_tells_how_long_new_nodes_take(tmp_path: Path) -> None:
    """Each step that was learned of its pool, as a line and in JSON; of a pool of which nothing was, none."""
    state = SqliteState(tmp_path / "state.db", SystemClock())
    now = state.now()
    t4, other = (
        Buy(
            pool=pool, offering=f"{pool}/g4dn/od", zone="", count=1, usd_per_hour=Decimal(1), boot_s=180,
            demands=(), shapes=(), why="w",
        )
        for pool in ("t4", "other")
    )  # fmt: skip
    group = msgspec.structs.replace(BOUGHT, pods=("x/y",), uids=("u-new",))
    plan = Plan(pods=(group,), buys=(t4, msgspec.structs.replace(other, offering="other/p5/od")))
    ledger.close(
        state,
        Record(id="00-aa", cluster="local", flow="provision", trigger="t", at=now, status="open", plan=plan, steps=()),
    )
    load = ImageLoad(at=0, uses=3.0, pulls=(150.0, 160.0, 170.0))
    known = FirstWork(images={"g4dn registry.acme.com/train:1": load}, boots={"t4": (95.0, 95.0, 95.0)})
    was = ledger.recall(state, "local")
    ledger.remember(state, "local", was, msgspec.structs.replace(was.memory, first_work=known))
    assert "a new node of t4 works after: boot 95 s, image pull 3 min\n" in why("x/y")
    (told,) = [one for one in json.loads(why("x/y", "--json")) if "boot_s" in one]
    assert (told["pool"], told["boot_s"], told["plugin_s"], told["pull_s"]) == ("t4", 95.0, None, 160.0)


def test_a_node_names_the_decision_and_the_pods_that_it_was_bought_for() -> None:
    """While it boots and once it works; a node that was there before is said to be of no decision."""
    on = Stage()
    [before] = on.world.launch("one")
    on.wait(10 * MINUTE)
    on.event(on.submit("waits", gpus=8))
    [record] = ledger.filed_records(on.deps.state, "c")
    [bought] = {*on.world.nodes} - {before}

    def said(subject: str) -> list[str]:
        snapshot, _ = preview(on.deps, releases=True)
        return [origin_line(one) for one in origins(on.deps, subject, snapshot, {record.id: record}, on.deps.now())]

    for _ in ("it boots", "it works"):
        assert said(bought) == [f"node {bought} was bought for ml/waits by decision {record.id}"]
        on.wait(10 * MINUTE)
        meter_nodes.count(on.deps)
    assert said(before) == [f"node {before} was bought by no decision of the last 30 days"]
    assert said("nobody") == []


def test_a_running_pod_of_no_decision_is_told_with_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """It found room by itself: status names it on its node, so that "nothing known" would contradict it."""
    cloud = world()
    cloud.launch("one")
    cloud.advance(600)
    cloud.submit([pod("held", on="one")], 7200.0)
    cloud.advance(60)
    with served(cloud) as outside:
        monkeypatch.setenv("PILOTLIGHT_WORLD", outside.url)
        for named in ("default/held", "held"):
            assert "now\n  node n1: keep, " in why(named)
        with pytest.raises(Failed, match="nothing known about 'ml/other'"):
            why("ml/other")
