"""Rights at Google are asked of Google: those that are missing and those that are too much are named by doctor."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from civo_server import Fault
from gke_answers import WHERE, error
from gke_project import Project, project
from gke_rights import NEEDS
from gke_server import Gke
from gke_site import serving
from small_cloud import world

from pilotlight.adapters.pools import gke as gke_cloud
from pilotlight.adapters.pools.gke import google_rest
from pilotlight.errors import Forbidden
from pilotlight.facts.limits.checks import Check
from pilotlight.ports.clouds import CloudAccount
from pilotlight.tools.checkup.clouds.gke_rights import ACT, LOOK, TOO_MUCH, gke_rights

ROOT = Path(__file__).resolve().parents[3]
COMMANDS = {"compute.machineTypes.list"}
"""Asked for by commands alone."""
PRICES = {"compute.advice.capacityHistory", "compute.advice.capacity"}
"""Of pools of spot alone: without them a look goes by what it knows."""
PERSONS = {"container.clusters.update", "container.operations.get"}


@pytest.fixture
def account() -> Iterator[tuple[Gke, Mapping[str, str]]]:
    """A project, and the environment that leads to it."""
    here = Gke(world())
    with serving(here) as environ:
        yield here, environ


def said(gke: Gke, environ: Mapping[str, str], granted: set[str], *, acts: bool = True) -> list[Check]:
    """What doctor says of an account with those rights."""
    gke.granted = granted
    return list(gke_rights(WHERE, environ, acts=acts))


def test_an_account_of_the_guide_is_told_so_once(account: tuple[Gke, Mapping[str, str]]) -> None:
    """One line, by one call."""
    (only,) = said(*account, {*LOOK, *ACT})
    assert (only.verdict, only.code) == ("ok", "right-gke")
    assert len(account[0].calls) == 1


@pytest.mark.parametrize("right", [*LOOK, *ACT])
def test_a_right_that_is_missing_is_named_with_what_goes_without_it(
    account: tuple[Gke, Mapping[str, str]], right: str
) -> None:
    """What buys is a fault where something is to be bought; a read is a warning."""
    (one,) = said(*account, {*LOOK, *ACT} - {right})
    assert one.what.startswith(f"may not {right}: ")
    assert (one.verdict, "docs/guides/gke.md" in one.fix) == ("fault" if right in ACT else "warning", True)


def test_who_only_advises_lacks_nothing_without_the_right_to_change(account: tuple[Gke, Mapping[str, str]]) -> None:
    """The first role is enough."""
    (only,) = said(*account, set(LOOK), acts=False)
    assert only.verdict == "ok"


def test_an_instance_admin_is_told_to_be_less(account: tuple[Gke, Mapping[str, str]]) -> None:
    """An account that can delete any instance of the project is more than Pilotlight needs."""
    (one,) = said(*account, {*LOOK, *ACT, *TOO_MUCH})
    assert one.verdict == "warning"
    assert all(right in one.what for right in TOO_MUCH)


def test_rights_that_cannot_be_asked_are_not_known(account: tuple[Gke, Mapping[str, str]]) -> None:
    """Where the interface is off in the project, its name and the command are said."""
    no = error(403, "accessNotConfigured", "it has not been used in this project")
    account[0].faults = [Fault((403, no))]
    (one,) = said(*account, {*LOOK, *ACT})
    assert (one.verdict, "cloudresourcemanager" in one.fix) == ("unknown", True)
    assert list(gke_rights("nowhere", account[1], acts=True)) == []


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project whose client is not patient."""
    monkeypatch.setattr(google_rest, "PAUSES_S", (0.0, 0.0))
    with project() as made:
        yield made


def test_the_roles_of_the_guide_are_enough_to_buy_and_to_give_back(here: Project) -> None:
    """Each method needs its right; nothing that is asked of Google lacks one."""
    here.gke.granted = {*LOOK, *ACT}
    here.gke.later = True
    here.pools.grow("one", 2, token="step-1")
    here.pools.describe()
    (first, _) = here.gke.world.nodes
    here.pools.release("one", first)
    assert here.pool().desired == 1
    assert here.gke.world.launches == 2


@pytest.mark.parametrize("right", sorted({*LOOK, *ACT} & set(NEEDS.values()) - PRICES))
def test_each_right_of_the_guide_is_needed(here: Project, right: str) -> None:
    """Without it a call of a purchase, of a look or of a release is refused by Google, or tells less."""
    affinity = {"consumeReservationType": "ANY_RESERVATION_THEN_FAIL"}
    here.gke.extra["one"] = {"config": {"machineType": "one", "reservationAffinity": affinity}}
    here.gke.reserve("open", 9, required=False)
    here.gke.later = True
    here.pools.grow("one", 1, token="step-1")
    here.gke.granted = {*LOOK, *ACT} - {right}
    if right == "compute.zoneOperations.get":
        here.gke.ends["createInstances"] = [{"code": "QUOTA_EXCEEDED", "message": "no more"}]
        assert here.pools.grow("one", 2, token="step-2").desired == 2, "its refusal is not told, as doctor says"
        return
    with pytest.raises(Forbidden, match=right):
        here.pools.grow("one", here.pool().desired + 1, token="step-2")


def test_a_shop_needs_the_right_of_commands() -> None:
    """Doctor asks which types a zone rents; no function does."""
    gke = Gke(world())
    gke.granted = COMMANDS
    with serving(gke) as environ:
        shop = gke_cloud.open_shop(WHERE, CloudAccount({}, gke.world.clock, str, environ))
        assert shop.assortment().sizes
        gke.granted = set()
        with pytest.raises(Forbidden):
            shop.assortment()


def test_guide_and_terraform_grant_what_doctor_asks_for_and_no_more() -> None:
    """Three lists that are one: the roles of the guide, those of Terraform, and what doctor names."""
    look, act = re.findall(r"--permissions (\S+)", (ROOT / "docs/guides/gke.md").read_text())
    assert set(look.split(",")) == {*LOOK, *COMMANDS}
    assert set(act.split(",")) == set(ACT)
    terraform = (ROOT / "infra/terraform/google/iam.tf").read_text()
    granted = set(re.findall(r'"((?:compute|container)\.\w+\.\w+)"', terraform))
    assert granted == {*LOOK, *ACT}
    assert not re.search(r'role\s*=\s*"roles/(compute\.(instance|admin)|container)', terraform)
    assert set(NEEDS.values()) <= {*LOOK, *ACT, *COMMANDS, *PERSONS}
