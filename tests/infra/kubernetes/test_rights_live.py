"""The roles and the admission policy of nodes on the control plane that KUBECONFIG names, as a real account.

Everything is applied under a name of the run's own, so that an account that is there stays as it is, and taken away.
test_admission_expressions evaluates the policies without a control plane; test_homes_live asks about those of pods.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from live_account import ANY, CORE, LIVE, OURS, WAIT_S, Site, a_site, an_acting_account, until_refused

from pilotlight.adapters.cluster.kubernetes import writes
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api
from pilotlight.errors import BadRequest, Retry
from pilotlight.tools.checkup.rights import EVIDENCE, GANGS, HEARTBEAT, LOOK, PULLS, SURVEY, TAKE, TELL, TOO_MUCH, Right
from pilotlight.tools.checkup.survey import ask_rights
from pilotlight.tools.install.admission_policy import limit_to

pytestmark = LIVE

GRANTS = {
    "observe": (*LOOK, *GANGS, *EVIDENCE, *HEARTBEAT, *PULLS, *SURVEY),
    "act": (*TELL, *TAKE),
}
RESTART = os.environ.get("RESTART_API_SERVER", "")
"""A shell command that restarts the API server: "stop apiserver; start apiserver" of a test bed."""


@pytest.fixture
def site() -> Iterator[Site]:
    """One for a test alone."""
    with a_site() as found:
        yield found


def _held(api: Api, rights: tuple[Right, ...]) -> set[Right]:
    return {right for right, granted in ask_rights(api, rights, {}).items() if granted}


EVERY = tuple(right for rights in GRANTS.values() for right in rights) + TOO_MUCH


@pytest.mark.parametrize("roles", [(), ("observe",), ("observe", "act")])
def test_a_role_grants_what_it_says_and_no_more(site: Site, roles: tuple[str, ...]) -> None:
    """The API server's own answers to every right, for each sum of roles."""
    for name in roles:
        site.apply(f"rbac/{name}.yaml")
    account = site.account()
    expected = {right for name in roles for right in GRANTS[name]}
    ends = time.monotonic() + WAIT_S
    while _held(account, EVERY) != expected and time.monotonic() < ends:
        time.sleep(0.5)
    assert _held(account, EVERY) == expected


@pytest.fixture(scope="module")
def acting() -> Iterator[tuple[Site, Api]]:
    """The account with observe and act, limited to the pools ``lit`` and ``other``."""
    with an_acting_account() as made:
        yield made


def test_our_taint_is_let_through(acting: tuple[Site, Api]) -> None:
    """On a node of a listed pool our taint goes on and off again, beside the taints of others."""
    site, account = acting
    node = site.node("lit")
    path = f"{CORE}/nodes/{node}"
    before = site.admin.get(path, ANY)["spec"].get("taints", [])
    writes.cordon(account, node, "17-a")
    spec = site.admin.get(path, ANY)["spec"]
    assert (spec.get("unschedulable"), OURS in spec["taints"]) == (None, True)
    writes.uncordon(account, node)
    left = site.admin.get(path, ANY)["spec"]
    mine = [taint for taint in left.get("taints", []) if not taint["key"].startswith("node.kubernetes.io/")]
    assert mine == [taint for taint in before if not taint["key"].startswith("node.kubernetes.io/")]
    assert not left.get("unschedulable")


def test_no_cordon_is_lifted(acting: tuple[Site, Api]) -> None:
    """Our taint comes off and somebody's cordon stays; to lift that is refused us."""
    site, account = acting
    node = site.node("lit")
    closed = {"spec": {"unschedulable": True, "taints": [OURS]}}
    site.admin.ask("PATCH", f"{CORE}/nodes/{node}", NOTHING, closed, MERGE_PATCH)
    writes.uncordon(account, node)
    assert site.admin.get(f"{CORE}/nodes/{node}", ANY)["spec"]["unschedulable"]
    with pytest.raises(BadRequest, match="cordons no node"):
        account.ask("PATCH", f"{CORE}/nodes/{node}", NOTHING, {"spec": {"unschedulable": None}}, MERGE_PATCH)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"spec": {"unschedulable": True}}, id="a cordon"),
        pytest.param({"metadata": {"labels": {"gpu": "free"}}}, id="a label"),
        pytest.param({"metadata": {"annotations": {"a": "b"}}}, id="an annotation"),
        pytest.param({"metadata": {"finalizers": ["example.com/stay"]}}, id="a finalizer"),
        pytest.param({"spec": {"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]}}, id="another taint"),
        pytest.param({"spec": {"taints": [{**OURS, "effect": "NoExecute"}]}}, id="our taint, throwing pods off"),
        pytest.param({"spec": {"providerID": "world://x"}}, id="its instance"),
    ],
)
def test_nothing_else_of_a_node_may_change(acting: tuple[Site, Api], change: dict[str, Any]) -> None:
    """Whatever is no taint of ours is refused by the policy, and the node stays as it was."""
    site, account = acting
    path = f"{CORE}/nodes/{site.node('lit')}"
    with pytest.raises(BadRequest, match="ilotlight"):
        account.ask("PATCH", path, NOTHING, change, MERGE_PATCH)


def test_a_node_of_another_pool_is_out_of_reach(acting: tuple[Site, Api]) -> None:
    """A pool that the policy does not list is refused, though RBAC would allow it."""
    site, account = acting
    with pytest.raises(BadRequest, match="in no pool"):
        writes.cordon(account, site.node("foreign"))


def test_nobody_else_is_looked_at(acting: tuple[Site, Api]) -> None:
    """Another account patches what it likes."""
    site, _ = acting
    path = f"{CORE}/nodes/{site.node('foreign')}"
    site.admin.ask("PATCH", path, NOTHING, {"metadata": {"labels": {"gpu": "free"}}}, MERGE_PATCH)
    assert site.admin.get(path, ANY)["metadata"]["labels"]["gpu"] == "free"


def test_a_restart_takes_no_right_away(acting: tuple[Site, Api]) -> None:
    """While the API server starts again our account is told to come back, never that it may not."""
    _, account = acting
    if not RESTART:
        pytest.skip("RESTART_API_SERVER names no command that restarts the API server")
    process = subprocess.Popen(RESTART, shell=True, stdout=subprocess.DEVNULL)
    seen, ends = set[str](), time.monotonic() + 600
    while process.poll() is None and time.monotonic() < ends:
        try:
            account.get(f"{CORE}/nodes", NOTHING, limit="1")
            seen.add("answered")
        except Retry:
            seen.add("later")
    assert process.wait(60) == 0
    assert seen == {"answered", "later"}
    account.get(f"{CORE}/nodes", NOTHING, limit="1")


def test_a_pool_of_any_name_is_taken_as_it_is(site: Site) -> None:
    """The API server takes names with quotes and backslashes as strings, and opens no other pool for them."""
    odd = ("it's", 'a"b', "back\\slash", "x' in [''] || true || 'x", "\U0001f525", "lit")
    found = site.objects("admission/nodes.yaml")
    limit_to(found, odd)
    for each in found:
        site.make(each)
    for role in ("observe", "act"):
        site.apply(f"rbac/{role}.yaml")
    account = site.account()
    until_refused(account, f"{CORE}/nodes/{site.node('foreign')}", lambda value: {"spec": {"taints": [OURS]}})
    writes.cordon(account, site.node("lit"))
    with pytest.raises(BadRequest, match="in no pool"):
        writes.cordon(account, site.node("foreign"))
