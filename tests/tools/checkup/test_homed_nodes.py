"""Homes as a check-up sees them: pools by the nodes that are there, and DaemonSets that their taint keeps off."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from small_fleet import A100, T4

from pilotlight.facts.capacity import Taint
from pilotlight.facts.labels import HOME
from pilotlight.facts.place.homes import BIRTH_TAINT as BIRTH
from pilotlight.facts.policy import CloudName, Placement, Policy, PoolPolicy
from pilotlight.tools.checkup.homed_nodes import home_checks
from pilotlight.tools.checkup.policy_pools import pool_checks
from pilotlight.tools.checkup.scalers import SetOfPods, seen_daemonset
from pilotlight.tools.checkup.survey_facts import SeenNode, SeenSet, Survey

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
GPU = Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule")
POOL = PoolPolicy(instance_type="g4dn.xlarge", labels={"gpu": "on-demand"}, taints=(GPU,), max=3)
NAMED = msgspec.structs.replace(BIRTH, value="17-a-0-3")
HOMED = msgspec.structs.replace(POOL, taints=(GPU, BIRTH))


def seen(*nodes: SeenNode, sets: tuple[SeenSet, ...] = ()) -> Survey:
    """A survey of these nodes and DaemonSets."""
    return Survey(server="s", version="v", at=NOW, nodes=nodes, daemonsets=sets)


def node(name: str, *taints: Taint, **changes: Any) -> SeenNode:
    """A node of the pool with these taints beside its own, two hours old."""
    since = {"created_at": NOW - timedelta(hours=2), "labels": POOL.labels, "pool": "t4", **changes}
    return SeenNode(name=name, gpus=1, ready=True, instance_type="g4dn.xlarge", taints=(GPU, *taints), **since)


def policy(*, homed: bool = True, placement: Placement = "homes", cloud: CloudName = "eks") -> Policy:
    """A policy of one pool."""
    pool = msgspec.structs.replace(HOMED if homed else POOL, cloud=cloud)
    return Policy(version=1, placement=placement, pools={"t4": pool})


def odd(**change: str) -> Policy:
    """A policy of one pool that lists another taint of our key."""
    pool = msgspec.structs.replace(POOL, cloud="eks", taints=(GPU, msgspec.structs.replace(BIRTH, **change)))
    return Policy(version=1, pools={"t4": pool})


def said(survey: Survey, rules: Policy) -> list[tuple[str, str]]:
    """Verdict and words of each line on a pool."""
    return [(check.verdict, check.what) for check in home_checks(survey, rules) if check.code == "home"]


SAID = {
    "homed, as its nodes are": (
        seen(node("a", NAMED), node("b")),
        policy(),
        [("ok", "is homed: 1 node is kept for pods that were given them, of 2")],
    ),
    "homed, and just born": (
        seen(node("a", BIRTH, created_at=NOW - timedelta(minutes=1))),
        policy(),
        [("ok", "is homed: 1 node is kept")],
    ),
    "homed, and named by nobody": (seen(node("a", BIRTH)), policy(), [("fault", "new for more than 10 minutes")]),
    "homed, and born without it": (seen(node("a")), policy(), [("warning", "is on 0 of 1 node: opened since")]),
    "homed, and at zero": (seen(), policy(), [("unknown", "no node of it is there")]),
    "not homed, as its nodes are": (seen(node("a")), policy(homed=False), []),
    "not homed, and its nodes are": (
        seen(node("a", BIRTH)),
        policy(homed=False),
        [("fault", "which the policy does not know of this pool")],
    ),
    "kept, and homes are off": (
        seen(node("a", NAMED), node("b", NAMED)),
        policy(placement="none"),
        [("fault", "2 nodes are kept by pilotlight.dev/home, and placement is none")],
    ),
    "kept, and of no pool": (
        seen(node("a", BIRTH, pool="other")),
        policy(homed=False),
        [("fault", "is of no pool of the policy")],
    ),
    "homed, and its nodes are closed by another effect": (
        seen(node("a", msgspec.structs.replace(BIRTH, effect="NoExecute"))),
        policy(),
        [("fault", "1 node is born with pilotlight.dev/home of effect NoExecute")],
    ),
    "listed with another effect": (
        seen(),
        odd(effect="NoExecute"),
        [("fault", "lists pilotlight.dev/home=new:NoExecute, which homes no pool")],
    ),
    "listed with another value": (
        seen(node("a", NAMED)),
        odd(value="mine"),
        [("fault", "lists pilotlight.dev/home=mine:NoSchedule, which homes no pool"), ("fault", "does not know of th")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("survey", "rules", "lines"), SAID.values(), ids=SAID.keys())
def test_whose_nodes_are_born_with_our_taint(survey: Survey, rules: Policy, lines: list[tuple[str, str]]) -> None:
    """What the policy says of a pool is compared with the nodes that are there, each difference with its fix."""
    found = said(survey, rules)
    assert [verdict for verdict, _ in found] == [verdict for verdict, _ in lines]
    assert all(words in what for (_, what), (_, words) in zip(found, lines, strict=True))
    assert all(check.fix for check in home_checks(survey, rules) if check.verdict != "ok")


@pytest.mark.parametrize(
    ("cloud", "words"),
    [
        ("eks", "update-nodegroup-config --taints 'addOrUpdateTaints=[{key=pilotlight.dev/home,value=new,effect=NO_"),
        ("gke", "node-pools update POOL --node-taints pilotlight.dev/home=new:NoSchedule"),
        ("civo", '{"key": "pilotlight.dev/home", "value": "new", "effect": "NoSchedule"}'),
        ("world", "its node pool's taints"),
    ],
)  # fmt: skip
def test_where_the_taint_is_set_is_said_by_cloud(cloud: CloudName, words: str) -> None:
    """Of a pool at zero, and of one whose nodes are born without it."""
    for survey in (seen(), seen(node("a"))):
        [check] = home_checks(survey, policy(cloud=cloud))
        assert words in check.fix


def test_a_pool_that_is_open_says_why() -> None:
    """Of each pool without the birth taint: whether another costs less a GPU."""
    rules = Policy(version=1, pools={"t4": POOL, "a100": msgspec.structs.replace(POOL, instance_type="A100x8")})
    found = {check.subject: (check.verdict, check.what) for check in home_checks(seen(), rules, (T4, A100))}
    assert found["pool t4"] == (
        "ok", "is open: no pool costs less than its $1.00 a GPU and hour, so its pods are at home there",
    )  # fmt: skip
    assert found["pool a100"][1].startswith("is open: a pod that may run on t4 too costs less there than $4.00 a GPU")
    off = msgspec.structs.replace(rules, placement="none")
    assert not list(home_checks(seen(), off, (T4, A100)))


def test_a_home_is_no_difference_of_a_pool() -> None:
    """It is named and taken off: neither that a node has it nor that it has it no more is told as a wrong taint."""
    for one in (node("a", NAMED), node("a")):
        found = pool_checks(seen(one), policy(), (), None)
        assert [check.code for check in found if check.verdict == "fault"] == []


def daemon_set(name: str, *tolerations: dict[str, str], **spec: object) -> SeenSet:
    """A DaemonSet as a check-up reads it."""
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "tolerations": [*tolerations], **spec}}
    made = {"metadata": {"name": name, "namespace": "sys"}, "spec": {"template": template}}
    return seen_daemonset(msgspec.convert(made, SetOfPods))


ANY_GPU = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
ANY_HOME = {"key": HOME, "operator": "Exists", "effect": "NoSchedule"}
SETS = {
    "it tolerates the pool's taint alone": (daemon_set("d", ANY_GPU), "warning"),
    "it tolerates homes too": (daemon_set("d", ANY_GPU, ANY_HOME), ""),
    "it tolerates homes, and no other taint": (daemon_set("d", ANY_HOME), ""),
    "it tolerates everything": (daemon_set("d", {"operator": "Exists"}), ""),
    "it tolerates everything that throws pods off": (
        daemon_set("d", ANY_GPU, {"operator": "Exists", "effect": "NoExecute"}),
        "warning",
    ),
    "it is for other nodes": (daemon_set("d", ANY_GPU, nodeSelector={"gpu": "never"}), ""),
    "it is not for GPU nodes": (daemon_set("d"), ""),
    "it makes GPUs allocatable": (daemon_set("nvidia-device-plugin-daemonset", ANY_GPU), "fault"),
}


@pytest.mark.parametrize("survey", [seen(node("a", NAMED)), seen()], ids=["a node is there", "at zero"])
@pytest.mark.parametrize(("made", "verdict"), SETS.values(), ids=SETS.keys())
def test_which_daemon_sets_a_home_keeps_off(survey: Survey, made: SeenSet, verdict: str) -> None:
    """Those that would come but for our taint are named with the toleration to add, the plugin as a fault."""
    survey = msgspec.structs.replace(survey, daemonsets=(made,))
    found = [check for check in home_checks(survey, policy()) if check.code == "home-daemonset"]
    assert [check.verdict for check in found] == ([verdict] if verdict else [])
    for check in found:
        assert (check.subject, "t4" in check.what) == (f"daemonset {made.full_name}", True)
        assert check.fix.endswith("{key: pilotlight.dev/home, operator: Exists, effect: NoSchedule}")


def test_a_plugin_for_nodes_that_nobody_has_seen_is_told() -> None:
    """Its selector names labels that only a node shows: of a pool at zero it is believed to belong there."""
    plugin = daemon_set("nvidia-device-plugin-daemonset", ANY_GPU, nodeSelector={"nvidia.com/gpu.present": "true"})
    codes = [check.code for check in home_checks(seen(sets=(plugin,)), policy())]
    assert codes == ["home", "home-daemonset"]


def test_without_homes_nothing_is_said_of_daemon_sets() -> None:
    """In another placement nodes take every pod."""
    survey = seen(node("a"), sets=(daemon_set("d", ANY_GPU),))
    assert list(home_checks(survey, policy(homed=False, placement="none"))) == []
