"""What Terraform and the code must agree on, and what a newcomer is asked."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import terraform_tables
from pilotlight import settings
from pilotlight.doorway import RECEIVES

ROOT = Path(__file__).resolve().parents[3]
TERRAFORM = ROOT / "infra" / "terraform"
PLAN = (TERRAFORM / "modules" / "plan" / "main.tf").read_text()
ASSIGNED = re.compile(r"^ *(\w+) *= ", re.M)


def _block(name: str, text: str = PLAN) -> str:
    """The lines inside ``name = {``, up to the brace that closes it."""
    _indent, body = re.findall(rf"^( *){name} *= \{{\n(.*?)^\1\}}", text, re.M | re.S)[0]
    return str(body)


def test_functions_read_what_the_plan_gives_and_nothing_else() -> None:
    """Every variable of settings.py is set by the plan or left out with a reason, and the plan knows no other."""
    known = set(re.findall(r"^(PILOTLIGHT_\w+)", settings.__doc__ or "", re.M))
    given, left_out = set(ASSIGNED.findall(_block("environment"))), set(ASSIGNED.findall(_block("left_out")))
    assert given & left_out == set()
    assert given | left_out == known


def test_what_settings_tell_of_is_what_they_read() -> None:
    """The table of settings.py names the variables that its code asks for."""
    source = Path(settings.__file__).read_text().partition('"""\n\n')[2]
    told = set(re.findall(r"^(PILOTLIGHT_\w+)", settings.__doc__ or "", re.M))
    assert set(re.findall(r'environ\.get\("(PILOTLIGHT_\w+)"', source)) <= told


def test_a_cluster_is_told_in_the_words_that_settings_read() -> None:
    """The keys of PILOTLIGHT_CLUSTERS are fields of a cluster's settings."""
    told = re.search(r"^  clusters = \{\n(.*?)^  \}", PLAN, re.M | re.S)
    assert told is not None
    keys = set(re.findall(r"\b(\w+) += (?![>=])", told[1]))
    assert keys == {"api", "mode", "pools", "token_env"}
    assert keys <= set(settings.ClusterSettings.__struct_fields__)


def test_every_function_of_the_door_is_planned() -> None:
    """The plan's routes are the functions that doorway knows."""
    routes = re.findall(r"^    (\w+) = \{\n      slug", PLAN, re.M)
    assert set(routes) == set(RECEIVES)


def test_outgoing_topics_are_those_the_code_publishes_to() -> None:
    """Each topic named in the package's flows exists, under the outbox's prefix."""
    sources = (ROOT / "shared" / "pilotlight" / "flow").rglob("*.py")
    named = {topic for path in sources for topic in re.findall(r'topic="([a-z-]+)"', path.read_text())}
    assert named <= set(re.findall(r"^    ([\w-]+) += \{ dead_letters", PLAN, re.M))


@pytest.mark.parametrize(
    "name", ["environments/dev.tfvars", "google_aws/root/environments/dev.tfvars", "examples/civo/civo.tfvars"]
)
def test_a_newcomer_gives_at_most_eight_values(name: str) -> None:
    """Each value of a first deployment is explained by a numbered comment, and there are at most eight."""
    text = (TERRAFORM / name).read_text()
    values = list(_values(text))
    explained = {number for line in re.findall(r"# *((?:\d\.(?: and )?)+)", text) for number in re.findall(r"\d", line)}
    assert len(values) <= 8
    assert explained == {str(n + 1) for n in range(len(values))}


def _values(text: str) -> Iterator[str]:
    """What is written in quotes outside comments, and the names given to clusters."""
    code = "\n".join(line.partition("#")[0] for line in text.splitlines())
    yield from re.findall(r'"[^"]*"', code)
    yield from re.findall(r"^    (\w+) = \{$", code, re.M)


@pytest.mark.parametrize("folder", terraform_tables.FOLDERS, ids=lambda folder: folder.name)
def test_inputs_and_outputs_are_listed_as_they_are(folder: Path) -> None:
    """A README has the tables that `python scripts/terraform_tables.py` writes, of every input and output there is."""
    text = (folder / "README.md").read_text()
    assert terraform_tables.page(text, folder) == text
    names = set(
        re.findall(r'^(?:variable|output) "(\w+)"', "\n".join(p.read_text() for p in folder.glob("*.tf")), re.M)
    )
    assert names == {block.name for block in terraform_tables.blocks(folder)}


@pytest.mark.parametrize("root", terraform_tables.ROOTS, ids=lambda folder: folder.name)
def test_what_root_and_module_share_is_described_once(root: Path) -> None:
    """Each variable and output of a root that its module has too says what the module says of it."""
    root_says, module_says = (
        {(block.kind, block.name): block.said["description"] for block in terraform_tables.blocks(folder)}
        for folder in (root, terraform_tables.ROOTS[root])
    )
    shared = root_says.keys() & module_says.keys()
    assert len(shared) > 10
    assert {key: root_says[key] for key in shared} == {key: module_says[key] for key in shared}


@pytest.mark.parametrize(
    "module", [*sorted(p.name for p in (TERRAFORM / "modules").iterdir()), "../google", "../aws", "../google_aws"]
)
def test_every_module_has_an_example(module: str) -> None:
    """Beside a module stands a configuration of it that terraform takes."""
    text = (TERRAFORM / "modules" / module / "examples" / "basic" / "main.tf").read_text()
    assert re.search(r'^  source = "../.."$', text, re.M)


@pytest.mark.parametrize("module", sorted(p.name for p in (TERRAFORM / "modules").iterdir()))
def test_every_module_says_what_it_is(module: str) -> None:
    """A module has a README, a description for every variable and output, and tests."""
    folder = TERRAFORM / "modules" / module
    assert (folder / "README.md").read_text().startswith("# ")
    for name in ("variables.tf", "outputs.tf"):
        text = (folder / name).read_text()
        blocks = re.findall(r'^(?:variable|output) "\w+" \{\n(.*?)^\}', text, re.M | re.S)
        assert all("description" in block for block in blocks)
    assert list((folder / "tests").glob("*.tftest.hcl"))


def test_nobody_gets_everything_and_nobody_is_everybody() -> None:
    """No basic role, none of Google's own on clusters or instances, no right for the public, no stored key, no value
    of a secret in any configuration."""
    text = "\n".join(path.read_text() for path in TERRAFORM.rglob("*.tf"))
    whole = ("roles/container.", "roles/compute.admin", "roles/compute.instanceAdmin")
    for never in ("allUsers", "allAuthenticatedUsers", "roles/owner", "roles/editor", "roles/viewer", *whole):
        assert never not in text
    # Of calls of AWS some know no resource: terraform_rules_aws.py says which. In the policy of a key it is the key.
    assert {path.name for path in TERRAFORM.rglob("*.tf") if '"*"' in path.read_text()} <= {"iam.tf", "encryption.tf"}
    assert '"*"' not in (TERRAFORM / "google" / "iam.tf").read_text()
    resources = set(re.findall(r'^resource "(\w+)"', text, re.M))
    kept = {"google_service_account_key", "google_secret_manager_secret_version", "aws_iam_access_key", "aws_iam_user"}
    assert resources & kept == set()


def test_the_runbook_knows_what_becomes_of_an_event() -> None:
    """Every subscription gives up after so many attempts, so that no fault is said to dead-letter nothing."""
    function = (TERRAFORM / "modules" / "function" / "main.tf").read_text()
    assert "dead_letter_policy" in function
    assert "nothing is dead-lettered" not in (ROOT / "docs" / "guides" / "runbook.md").read_text().lower()
