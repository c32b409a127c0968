"""The five lines that a plan and a whole decision open with."""

from datetime import UTC, datetime
from decimal import Decimal

import msgspec

from pilotlight.facts.decisions import Buy, CallStep, Held, NodeVerdict, Plan, Record
from pilotlight.facts.place.pod_verdicts import PodGroup
from pilotlight.facts.workload import Finding
from pilotlight.tools.report.texts.plan_head import dollars, head, head_of_record
from pilotlight.tools.report.texts.plan_text import Source, lines
from pilotlight.tools.report.texts.why_text import decision_lines
from pilotlight.units import cents

BUY = Buy(
    pool="t4", offering="t4/od", zone="", count=3, usd_per_hour=Decimal("0.5"), boot_s=60, demands=("u",), shapes=(),
    why="3 waiting pods without room",
)  # fmt: skip


def _node(name: str, usd: Decimal | None) -> NodeVerdict:
    return NodeVerdict(node=name, pool="t4", instance=f"i-{name}", verdict="release", why="idle", usd_per_hour=usd)


def _pods(verdict: str, *names: str) -> PodGroup:
    return PodGroup(verdict=verdict, pods=names, uids=names, where="", why="because")  # type: ignore[arg-type]


PLAN = Plan(
    buys=(BUY,),
    nodes=(_node("a", Decimal("3.06")), _node("b", None)),
    pods=(_pods("refused", "x/1", "x/2"), _pods("booting", "x/3"), _pods("finding", "x/4")),
    findings=(
        Finding(subject="x/4", code="selector", message="mend it", uid="x/4"),
        Finding(subject="pool t4", code="quota-full", message="raise it"),
        Finding(subject="queue q", code="waits-for-quota", message="raise it"),
    ),
    held=(Held(code="paused", why="paused", count=2, buy=BUY),),
    usd_per_hour_before=Decimal("3.06"),
    usd_per_hour_after=Decimal("1.5"),
)


def test_a_plan_opens_with_five_lines() -> None:
    """Purchases and releases with their dollars, waits by what they are for, dollars, and what to mend."""
    assert [tuple(line) for line in head(PLAN)] == [
        ("buy", "3 nodes, $1.50/h: 3 x t4/od; held: 2 nodes, $1.00/h: 2 x t4/od"),
        ("release", "2 nodes, $3.06/h and 1 unknown price: a, b"),
        (
            "waits",
            "1 pod for nodes on their way; 2 pods for room under a cap, budget or quota; 1 queue for quota (queue q); "
            "2 nodes for a pool that is paused, or another's",
        ),
        ("dollars", "at least $3.06/h now, $1.50/h after this plan (-$1.56/h), 1 node of unknown price"),
        ("to mend", "1 pod that no node would help (x/4); 1 finding (pool t4)"),
    ]
    assert {line.text for line in head(Plan()) if line.word != "dollars"} == {"nothing"}


def test_what_refused_pods_wait_for_is_named() -> None:
    """A cap, a budget, a team without one: each is another thing to do."""
    groups = [msgspec.structs.replace(_pods("refused", f"x/{code}"), code=code) for code in ("cap", "budget", "unpaid")]
    [waits] = [line.text for line in head(Plan(pods=tuple(groups))) if line.word == "waits"]
    assert waits == ("1 pod for room under a cap; 1 pod for room under a budget; 1 pod for a budget of their team")


def test_a_pod_whose_gpus_cannot_be_read_is_a_pod_that_waits() -> None:
    """It is told once, among the pods, and nothing says that none waits."""
    bad = Finding(subject="ml/bad", code="bad-quantity", message="asks for 1.500 nvidia.com/gpu", uid="u1")
    plan = Plan(findings=(bad, Finding(subject="pool t4", code="quota-full", message="raise it")))
    assert head(plan)[-1].text == "1 pod that no node would help (ml/bad); 1 finding (pool t4)"
    said = "\n".join(line.plain for line in lines(plan, datetime(2026, 11, 21, tzinfo=UTC), Source(of="a", by="b")))
    assert "no GPU pod waits" not in said
    assert said.count("1.500 nvidia.com/gpu") == 1
    assert said.index("Pods") < said.index("1.500 nvidia.com/gpu") < said.index("Nodes")


def test_dollars_are_a_least_where_lit_nodes_have_no_price() -> None:
    """Before and after by the nodes that are lit then; one that is stopped, and stands by, is none."""
    kept, gone = (
        NodeVerdict(node="n", pool="t4", instance="i", verdict=verdict, why="", usd_per_hour=None)
        for verdict in ("keep", "release")
    )
    stopped = msgspec.structs.replace(kept, registered=False)
    said = "at least $0.00/h now, {}$0.00/h after this plan ($0.00/h), {} of unknown price"
    assert dollars(Plan(nodes=(kept, gone))) == said.format("at least ", "2 nodes")
    assert dollars(Plan(nodes=(gone,))) == said.format("", "1 node")
    assert dollars(Plan(nodes=(stopped,))) == "$0.00/h now, $0.00/h after this plan ($0.00/h)"


def test_what_advice_alone_would_buy_waits_for_mode_act_and_not_for_capacity() -> None:
    """With its nodes and dollars, whatever the pods of the purchase are told."""
    waits = msgspec.structs.replace(_pods("waiting", "x/1"), where="t4/od")
    plan = Plan(pods=(waits, _pods("waiting", "x/2")), held=(Held(code="mode", why="advise", count=3, buy=BUY),))
    said = {line.word: line.text for line in head(plan)}
    assert said["buy"] == "nothing; held: 3 nodes, $1.50/h: 3 x t4/od"
    assert said["waits"] == "1 pod for capacity that is not to be had now; 3 nodes for mode act"


def test_a_decision_says_what_of_it_did_not_happen() -> None:
    """Nodes that were refused or came short of what was asked are no purchases; a call on its way is not judged."""
    steps = (
        CallStep(n=0, call="grow", pool="t4", target="t4/od", count=1, state="done"),
        CallStep(n=1, call="release", pool="t4", target="a", state="denied", code="taken"),
        CallStep(n=2, call="release", pool="t4", target="b", state="sent"),
    )
    record = Record(
        id="d", cluster="local", flow="reconcile", trigger="t", at=datetime(2026, 11, 24, tzinfo=UTC), status="open",
        plan=PLAN, steps=steps,
    )  # fmt: skip
    buy, release, *_ = head_of_record(record)
    assert buy.text == "3 nodes, $1.50/h: 3 x t4/od; held: 2 nodes, $1.00/h: 2 x t4/od; 2 not bought"
    assert release.text.endswith("; 1 not released")
    for subject in ("d", "x/1"):
        title, *five = list(decision_lines(record, subject, ""))[:6]
        assert title.startswith("2026-11-24 00:00:00 UTC  decision d")
        assert five == [f"  {word:<8}  {text}" for word, text in head_of_record(record)]


def test_a_sum_is_rounded_once_and_alike_wherever_it_is_said() -> None:
    """Two nodes of $0.526 are $1.05 an hour in status; a plan, whose cents would not add up, says all digits."""
    each = Decimal("0.526")
    buy = msgspec.structs.replace(BUY, count=1, usd_per_hour=each)
    plan = Plan(buys=(buy,), usd_per_hour_before=each, usd_per_hour_after=2 * each)
    assert dollars(plan) == "$0.526/h now, $1.052/h after this plan (+$0.526/h)"
    assert [cents(Decimal(usd)) for usd in ("1.052", "0.525", "0.535", "-0.525")] == [
        "$1.05",
        "$0.53",
        "$0.54",
        "$-0.53",
    ]
