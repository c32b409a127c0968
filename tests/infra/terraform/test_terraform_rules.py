"""The rules of terraform_rules.py hold, and each goes red when the fault it is for is put back."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import terraform_rules as rules
from terraform_runs import TERRAFORM, Rule, Runs, Tree, needs_terraform, rule_name

needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (apt-get install prometheus)")

RULES: list[Rule] = [
    *rules.GRAPH,
    *rules.STATE,
    *rules.TEXT,
    rules.agents_are_asked_for,
    rules.what_stays_can_be_taken_over,
]


@pytest.fixture(scope="module")
def shipped(runs: Runs) -> Tree:
    """What is in the repository."""
    return Tree(runs, runs.tree())


@needs_terraform
@pytest.mark.parametrize("rule", RULES, ids=rule_name)
def test_it_holds(shipped: Tree, rule: Rule) -> None:
    """The deployment keeps the rule."""
    assert shipped.broken(rule) == []


AFTER_APIS = "  depends_on = [terraform_data.apis, google_kms_crypto_key_iam_member.agent]\n"
AGENT_LINE = 'try(google_project_service_identity.this["pubsub.googleapis.com"].member, null)'
AGENT_GUESS = '"serviceAccount:service-${data.google_project.this.number}@gcp-sa-pubsub.iam.gserviceaccount.com"'
ENOUGH = 'pow(2, 32 - try(tonumber(split("/", var.settings.network.cidr)[1]), 0)) - 4 >= 4 * var.instances'

OF_AWS = '    aws = {\n      source  = "hashicorp/aws"\n      version = ">= 6.0, < 7.0"\n    }\n'
A_TABLE = 'module "table" {\n  source = "../aws_table"\n  count  = 0\n  name   = "x"\n}\n\n'

FAULTS = [
    pytest.param(
        rules.builds_read_their_sources,
        ("google/iam.tf", "gcf-v2-sources-", "no-sources-"),
        "builder may not read",
        id="the builder reads our bucket and not Google's copy",
    ),
    pytest.param(
        rules.builds_read_their_sources,
        (
            "google/iam.tf",
            '"roles/logging.logWriter"] : []',
            '"roles/logging.logWriter", "roles/storage.objectViewer"] : []',
        ),
        "every bucket",
        id="the builder reads every bucket of the project",
    ),
    pytest.param(
        rules.builds_wait_for_rights,
        ("google/functions.tf", "    terraform_data.builder,\n", ""),
        "is built before",
        id="a build begins before its rights are known",
    ),
    pytest.param(
        rules.comes_after_its_api,
        ("google/state.tf", AFTER_APIS, ""),
        "google_firestore_database",
        id="the database races its API",
    ),
    pytest.param(
        rules.comes_after_its_api,
        (
            "google/services.tf",
            "  project_id = local.settings.project\n\n  depends_on = [terraform_data.apis]\n",
            "  project_id = local.settings.project\n",
        ),
        "data.google_project.this",
        id="the project is read before its API is enabled",
    ),
    pytest.param(
        rules.has_its_api,
        ("google/services.tf", '["billingbudgets.googleapis.com", "cloudbilling.googleapis.com"]', "[]"),
        "billingbudgets",
        id="the budget's API is not enabled",
    ),
    pytest.param(
        rules.agents_are_asked_for,
        ("google/services.tf", AGENT_LINE, AGENT_GUESS),
        "module.topic",
        id="Pub/Sub's agent is named and never asked for",
    ),
    pytest.param(
        rules.pushes_come_with_tokens,
        ("modules/function/main.tf", "  member             = var.agent\n", "  member             = var.builder\n"),
        "may not make",
        id="the agent has no right to the tokens of pushes",
    ),
    pytest.param(
        rules.no_bucket_outlives_its_objects,
        ("google/functions.tf", "force_destroy = true", "force_destroy = !local.settings.protected"),
        "google_storage_bucket.this",
        id="the bucket is kept by the bundles in it",
    ),
    pytest.param(
        rules.what_stays_can_be_taken_over,
        ("main.tf", "module.state.google_firestore_database", "module.other.google_firestore_database"),
        "module.state.google_firestore_database.this[0]",
        id="an abandoned database is in the way of the next deployment",
    ),
    pytest.param(
        rules.budgets_are_asked_in_a_projects_name,
        ("providers.tf", "  user_project_override = true\n", ""),
        "user_project_override",
        id="the budget is asked for in nobody's name",
    ),
    pytest.param(
        rules.clusters_are_in_their_projects,
        ("modules/plan/main.tf", "coalesce(c.gke.project, local.settings.project)", "local.settings.project"),
        "another project",
        id="Pilotlight's project is taken for the cluster's",
    ),
    pytest.param(
        rules.instances_have_addresses,
        (
            ("modules/network/variables.tf", ENOUGH, 'var.settings.network.cidr != ""'),
            ("google/tests/everything.tftest.hcl", 'bundles" }', 'bundles", max_instances = 9 }'),
        ),
        "128 addresses for 63 instances",
        id="more instances than the range has addresses for",
    ),
    pytest.param(
        rules.silence_is_told_of_what_never_spoke,
        ("google/monitoring.tf", '"absent(sum(increase(', '"(sum(increase('),
        "no alert tells of silence",
        id="silence is looked for where a series was",
    ),
    pytest.param(
        rules.who_exports_the_audit_only_adds,
        ("google/audit.tf", '["storage.objects.setRetention"]', '["storage.objects.delete"]'),
        "allows storage.objects.delete",
        id="whoever carries the audit out may delete it there",
    ),
    pytest.param(
        rules.the_runtime_is_the_bundles,
        ("modules/function/main.tf", '"python311"', '"python313"'),
        "does not run Python",
        id="bytecode is of another Python than the runtime's",
    ),
    pytest.param(
        rules.audit_logs_are_claimed_where_they_are_kept,
        ("google/functions.tf", "who reads them tells nothing", "reads of them are in Cloud Audit Logs"),
        "nobody keeps",
        id="reads are said to be in logs that nobody keeps",
    ),
    pytest.param(
        rules.each_reads_the_secrets_it_names,
        ("modules/plan/main.tf", 'role = "read"', 'role = "act"'),
        "only reads and holds",
        id="what counts money holds what buys",
    ),
    pytest.param(
        rules.each_reads_the_secrets_it_names,
        ("modules/plan/main.tf", "? local.settings.alerts.secrets :", '? local.cluster_secrets["act"] :'),
        "faces outward and holds",
        id="what faces outward holds the clusters' secrets",
    ),
    pytest.param(
        rules.each_reads_the_secrets_it_names,
        (
            "modules/function/main.tf",
            "  for_each = local.secrets\n\n  project   =",
            '  for_each = merge(local.secrets, { MORE = "of-another" })\n\n  project   =',
        ),
        "does not name it",
        id="an account reads a secret that its function does not name",
    ),
    pytest.param(
        rules.what_faces_outward_writes_no_books,
        ("google/state.tf", ' if function != "alert_fanout"', ""),
        "may write where budgets are",
        id="what faces outward may rewrite holds",
    ),
    pytest.param(
        rules.who_reads_the_bill_reaches_no_cluster,
        ("modules/plan/main.tf", 'slug = "bills", role = "bills"', 'slug = "bills", role = "read"'),
        "reaches clusters",
        id="who reads the bill looks at clusters",
    ),
    pytest.param(
        rules.the_bill_reaches_who_counts,
        ("modules/plan/main.tf", 'PILOTLIGHT_BILLS = "billing_import"', 'PILOTLIGHT_BILLS = "billing_tick"'),
        "does not know the bill",
        id="the bill does not reach billing_import",
    ),
    pytest.param(
        rules.modules_leave_providers_to_their_callers,
        ("google/versions.tf", "terraform {", 'provider "google" {}\n\nterraform {'),
        "configures a provider",
        id="the module configures its own providers",
    ),
    pytest.param(
        rules.nothing_of_aws_is_needed_on_google_alone,
        ("modules/topic/versions.tf", "    google = {", f"{OF_AWS}    google = {{"),
        "modules/topic/versions.tf speaks of hashicorp/aws",
        id="a module that is called asks for a provider of AWS",
    ),
    pytest.param(
        rules.nothing_of_aws_is_needed_on_google_alone,
        ("modules/cluster_events/main.tf", 'resource "google_logging', f'{A_TABLE}resource "google_logging'),
        "modules/aws_table/main.tf speaks of resource",
        id="a module that is called calls one with a provider of AWS",
    ),
    pytest.param(
        rules.production_is_a_deployment_of_its_own,
        ("environments/prod.tfvars", "my-pilotlight-prod", "my-pilotlight-project"),
        "project is",
        id="production shares a project with dev",
    ),
    pytest.param(
        rules.all_is_kept_under_the_key,
        ("google/topics.tf", "  kms_key      = local.key\n", ""),
        "is kept under Google's key",
        id="messages are not under the key that was given",
    ),
    pytest.param(
        rules.all_is_kept_under_the_key,
        ("google/services.tf", '"run.googleapis.com", "secretmanager.googleapis.com",\n', '"run.googleapis.com",\n'),
        "the agent of secretmanager may not use the key",
        id="secrets cannot be made with the key",
    ),
]


TOGETHER = 3
"""Faults are put back a few at once, in so many trees; those of one rule never together."""


@pytest.fixture(scope="module")
def broken(runs: Runs) -> list[Tree]:
    """Trees with faults in them: the n-th fault of a rule is in the n-th."""
    trees = [Tree(runs, runs.tree()) for _ in range(TOGETHER)]
    for n, fault in _numbered():
        for name, now, before in fault if isinstance(fault[0], tuple) else (fault,):
            text = (trees[n].path / name).read_text()
            assert now in text, f"{name} has no {now}"
            (trees[n].path / name).write_text(text.replace(now, before))
    return trees


def _numbered() -> Iterator[tuple[int, Any]]:
    seen: dict[object, int] = {}
    for rule, fault, _said in (param.values for param in FAULTS):
        yield seen.get(rule, 0), fault
        seen[rule] = seen.get(rule, 0) + 1


@needs_terraform
@pytest.mark.parametrize(("rule", "fault", "said"), FAULTS)
def test_it_goes_red_when_the_fault_is_put_back(broken: list[Tree], rule: Rule, fault: object, said: str) -> None:
    """A fault that was mended is told by its rule as soon as it is there again."""
    number = next(n for n, other in _numbered() if other == fault)
    assert any(said in line for line in broken[number].broken(rule))


def test_every_rule_is_seen_to_go_red() -> None:
    """Each rule has a fault that it tells."""
    assert {param.values[0] for param in FAULTS} == set(RULES)


SILENT = """\
rule_files: [silent.yaml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series: [{{series: '{series}', values: '{values}'}}]
    alert_rule_test:
      - {{eval_time: 30m, alertname: Silent, exp_alerts: [{fires}]}}
"""
SERIES = (
    'run_googleapis_com:request_count{monitored_resource="cloud_run_revision",response_code_class="2xx",'
    'service_name="pilotlight-dev-capacity-reconcile"}'
)


@needs_terraform
@needs_promtool
@pytest.mark.parametrize(
    ("series", "values", "fires"),
    [
        pytest.param(SERIES, "0+1x40", False, id="a tick a minute is no silence"),
        pytest.param(SERIES, "0+1x10 10x30", True, id="ticks that stopped are told"),
        pytest.param("another", "0+1x40", True, id="what was never alive is told"),
        pytest.param(SERIES.replace("2xx", "5xx"), "0+1x40", True, id="ticks that fail are no sign of life"),
    ],
)
def test_silence_is_told(shipped: Tree, tmp_path: Path, series: str, values: str, fires: bool) -> None:
    """The alert's query, as Cloud Monitoring runs it, fires where no tick is answered, and not otherwise."""
    query, wait = next(
        (found["query"], found["duration"])
        for made in shipped.state
        if made.address == "google_monitoring_alert_policy.silent[0]"
        for found in made.values["conditions"][0]["condition_prometheus_query_language"]
    )
    rule = f"groups: [{{name: g, rules: [{{alert: Silent, expr: '{query}', for: {wait}}}]}}]\n"
    (tmp_path / "silent.yaml").write_text(rule)
    told = "{exp_labels: {}}" if fires else ""
    (tmp_path / "test.yaml").write_text(SILENT.format(series=series, values=values, fires=told))
    run = subprocess.run(["promtool", "test", "rules", str(tmp_path / "test.yaml")], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


AN_ACCOUNT = '{ account_id = "123456789012", region = "eu-west-1" }'
REFUSED = [
    pytest.param(
        "google", "region ", '"europe-west1-b"', "region is written as Google does", id="a zone on Google Cloud"
    ),
    pytest.param("google", "regoin ", '"europe-west1"', "regoin is no setting:", id="a misspelt key on Google Cloud"),
    pytest.param("aws", "bills ", '"focus:gs://acme/x"', "bills is focus:s3://", id="another cloud's bill on AWS"),
    pytest.param(
        "aws", "clusters ", "{ ml = { ks = {} } }", "clusters.ml.ks is no setting:", id="a misspelt key on AWS"
    ),
    pytest.param("google", "aws ", AN_ACCOUNT, "aws and state.dynamodb are", id="an account of AWS on Google alone"),
    pytest.param(".", "aws ", AN_ACCOUNT, "aws and state.dynamodb are", id="an account of AWS in Google's root"),
    pytest.param(".", "state ", "{ dynamodb = {} }", "aws and state.dynamodb are", id="a table in Google's root"),
    pytest.param("google_aws", "regoin ", '"eu-west-1"', "regoin is no setting:", id="a misspelt key on both"),
    pytest.param("google_aws", "state ", "{ dynamodb = {} }", "Functions on Google", id="a table that none reaches"),
]


@needs_terraform
@pytest.mark.parametrize(("module", "key", "value", "said"), REFUSED)
def test_a_cloud_says_why_settings_are_refused_and_nothing_else(
    runs: Runs, module: str, key: str, value: str, said: str
) -> None:
    """Each cloud's module hands settings to what refuses them, and no later error hides the reason."""
    tree = runs.tree()
    file = "root" if module == "." else "everything"
    path = tree / module / "tests" / f"{file}.tftest.hcl"
    lines = [line for line in path.read_text().splitlines() if not line.strip().startswith(key)]
    lines.insert(lines.index("  settings = {") + 1, f"    {key}= {value}")
    path.write_text("\n".join(lines))
    reasons = runs.refused(tree, module, file)
    assert len(reasons) == 1
    assert reasons[0].startswith(said)


def test_the_root_passes_on_what_the_module_takes() -> None:
    """The settings are given to the root as they are to the module, and every output is the root's too."""
    import re

    def names(folder: Path, kind: str) -> set[str]:
        text = "\n".join(path.read_text() for path in folder.glob("*.tf"))
        return set(re.findall(rf'^{kind} "(\w+)"', text, re.M))

    google = TERRAFORM / "google"
    own = {"environment", "protected", "labels", "adopt"}
    assert names(TERRAFORM, "variable") - own == names(google, "variable") - {"table", "apis"} == {"settings"}
    assert names(TERRAFORM, "output") == names(google, "output")
