"""What must hold of the deployment on Google Cloud and what mocks cannot see. A rule says what breaks it, line by line.

They read the graph (what comes after what), a state (every instance with its values) or the files as text.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple


class Made(NamedTuple):
    """One instance of a state."""

    address: str
    mode: str
    type: str
    values: Mapping[str, Any]


class Graph:
    """What each resource comes after, by address without instance keys."""

    def __init__(self, edges: Mapping[str, set[str]]) -> None:
        self.edges = edges
        self._reach = cache(self._found)

    def _found(self, start: str) -> frozenset[str]:
        seen, todo = set(), [start]
        while todo:
            for after in self.edges.get(todo.pop(), ()):
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
        return frozenset(seen)

    def after(self, address: str) -> frozenset[str]:
        """All that stands before a resource when things are made."""
        return self._reach(address)


State = Sequence[Made]
SERVICE = "google_project_service.this"
AGENT = "google_project_service_identity.this"

APIS = {
    "google_artifact_registry": "artifactregistry",
    "google_billing_account": "cloudbilling",
    "google_billing_budget": "billingbudgets",
    "google_cloud_run": "run",
    "google_cloud_scheduler": "cloudscheduler",
    "google_cloudfunctions2": "cloudfunctions",
    "google_compute": "compute",
    "google_firestore": "firestore",
    "google_iam": "iam",
    "google_kms": "cloudkms",
    "google_logging": "logging",
    "google_monitoring": "monitoring",
    "google_project": "cloudresourcemanager",
    "google_project_service": "serviceusage",
    "google_pubsub": "pubsub",
    "google_secret_manager": "secretmanager",
    "google_service_account": "iam",
    "google_storage": "storage",
}
"""The API that a type of resource is made by, by the longest beginning of its name."""


def _kind(address: str) -> str:
    """The type in an address: "google_x" of "module.a.data.google_x.this"."""
    return address.split(".")[-2]


def of_type(state: State, kind: str, mode: str = "managed") -> list[Made]:
    """The instances of a type."""
    return [made for made in state if made.type == kind and made.mode == mode]


def _place(address: str) -> str:
    """The address in the graph: without the keys of instances."""
    return re.sub(r"\[[^\]]*\]", "", address)


def comes_after_its_api(graph: Graph) -> Iterator[str]:
    """Everything of Google is made after the APIs are enabled, and none is read before."""
    (service,) = (address for address in graph.edges if address.endswith(SERVICE))
    for address in sorted(graph.edges):
        if _kind(address).startswith("google_") and address != service and service not in graph.after(address):
            yield f"{address} does not come after {SERVICE}"


def has_its_api(state: State) -> Iterator[str]:
    """The API of everything that is made is enabled."""
    enabled = {made.values["service"] for made in of_type(state, "google_project_service")}
    for made in state:
        beginnings = [begins for begins in APIS if made.type.startswith(begins)]
        if made.type.startswith("google_"):
            api = f"{APIS[max(beginnings, key=len)]}.googleapis.com"
            if api not in enabled:
                yield f"{made.address} needs {api}"


def builds_read_their_sources(state: State) -> Iterator[str]:
    """Whoever builds a function may read Google's copy of its source, and only that and our bucket."""
    region = of_type(state, "google_storage_bucket")[0].values["location"]
    number = of_type(state, "google_project", "data")[0].values["number"]
    copies = f"projects/_/buckets/gcf-v2-sources-{number}-{region}"
    for made in of_type(state, "google_cloudfunctions2_function"):
        account = made.values["build_config"][0]["service_account"]
        emails = {a.values["email"] for a in of_type(state, "google_service_account") if a.values["name"] == account}
        rights = [
            right.values
            for right in of_type(state, "google_project_iam_member")
            if right.values["member"] in {f"serviceAccount:{email}" for email in emails}
            and right.values["role"] == "roles/storage.objectViewer"
        ]
        if not any(copies in one["expression"] for right in rights for one in right["condition"]):
            yield f"{made.address}: its builder may not read {copies}"
        if any(not right["condition"] for right in rights):
            yield f"{made.address}: its builder may read every bucket"


def builds_wait_for_rights(graph: Graph) -> Iterator[str]:
    """A function is built after its builder's rights and a wait for them to be known."""
    wait, rights = "terraform_data.builder", {"google_project_iam_member.builder_sources"}
    rights |= {"google_project_iam_member.builder", "google_storage_bucket_iam_member.builder"}
    rights.add("google_artifact_registry_repository_iam_member.builder")
    for missing in sorted(rights - graph.after(wait)):
        yield f"{wait} does not wait for {missing}"
    for address in graph.edges:
        if _kind(address) == "google_cloudfunctions2_function" and wait not in graph.after(address):
            yield f"{address} is built before {wait}"


def agents_are_asked_for(state: State, graph: Graph) -> Iterator[str]:
    """An agent of Google's gets rights after it was asked for: before, it may not exist."""
    agents = {made.values["member"] for made in of_type(state, "google_project_service_identity")}
    if not agents:
        yield "no agent is asked for"
    for made in state:
        member = str(made.values.get("member"))
        asked_for = member in agents and AGENT in graph.after(_place(made.address))
        if "_iam_member" in made.type and (member in agents or "gcp-sa-pubsub" in member) and not asked_for:
            yield f"{made.address} is given before {AGENT}"


def no_bucket_outlives_its_objects(state: State) -> Iterator[str]:
    """A bucket whose objects stay behind can be taken away with them."""
    kept = {
        made.values["bucket"]
        for made in of_type(state, "google_storage_bucket_object")
        if made.values["deletion_policy"]
    }
    for made in of_type(state, "google_storage_bucket"):
        if made.values["name"] in kept and not made.values["force_destroy"]:
            yield f"{made.address} keeps objects and cannot be destroyed with them"


STAYS = {
    "google_firestore_database": "abandoned when it is protected",
    "google_iam_workload_identity_pool": "its name is blocked for 30 days",
    "google_iam_workload_identity_pool_provider": "its name is blocked for 30 days",
}


def what_stays_can_be_taken_over(state: State, tree: Path) -> Iterator[str]:
    """What a destroy leaves behind, or whose name it blocks, has an import block."""
    roots = (tree, tree / "google_aws" / "root")
    texts = [(root / "main.tf").read_text() for root in roots]
    imported = {to for text in texts for to in re.findall(r"^ +to += module\.pilotlight\.(\S+)", text, re.M)}
    for made in state:
        if made.mode == "managed" and made.type in STAYS and made.address not in imported:
            yield f"{made.address}: {STAYS[made.type]}, and no import block takes it over"


def budgets_are_asked_in_a_projects_name(tree: Path) -> Iterator[str]:
    """The providers send the project that the Budget API asks for with a person's credentials."""
    for root, name in product((tree, tree / "google_aws" / "root"), ("google", "google-beta")):
        block = re.findall(rf'^provider "{name}" \{{\n(.*?)^\}}', (root / "providers.tf").read_text(), re.M | re.S)
        for line in (r"user_project_override += true", r"billing_project +="):
            if not block or not re.search(line, block[0]):
                yield f"{root.relative_to(tree)}, provider {name}: no {line.split(' ')[0]}"


def clusters_are_in_their_projects(state: State) -> Iterator[str]:
    """A GKE cluster in another project is reached, listened to and asked for there."""
    for made in of_type(state, "google_cloudfunctions2_function"):
        given = made.values["service_config"][0]["environment_variables"]
        if "gke:projects/acme-clusters/" not in given["PILOTLIGHT_CLUSTERS"]:
            yield f"{made.address} looks for the cluster in another project"
    if {m.values["project"] for m in of_type(state, "google_logging_project_sink")} != {"acme-clusters"}:
        yield "log sinks are not in the cluster's project"


def instances_have_addresses(state: State) -> Iterator[str]:
    """A subnetwork has four addresses for each instance that may run, beside Google's own four."""
    most = sum(
        f.values["service_config"][0]["max_instance_count"] for f in of_type(state, "google_cloudfunctions2_function")
    )
    for made in of_type(state, "google_compute_subnetwork"):
        bits = int(made.values["ip_cidr_range"].partition("/")[2])
        if 2 ** (32 - bits) - 4 < 4 * most:
            yield f"{made.address} has {2 ** (32 - bits)} addresses for {most} instances"


def silence_is_told_of_what_never_spoke(state: State) -> Iterator[str]:
    """An alert on silence asks absent(), for a condition on a series that never was cannot hold."""
    for made in of_type(state, "google_monitoring_alert_policy"):
        for condition in made.values["conditions"]:
            if condition["condition_absent"]:
                yield f"{made.address} tells nothing of what was never alive"
    queries = [
        query["query"]
        for made in of_type(state, "google_monitoring_alert_policy")
        for condition in made.values["conditions"]
        for query in condition["condition_prometheus_query_language"]
    ]
    if not any(query.startswith("absent(") for query in queries):
        yield "no alert tells of silence"


def each_reads_the_secrets_it_names(state: State) -> Iterator[str]:
    """No account reads a secret that its function does not name; what reads holds nothing that acts."""
    named: dict[str, set[str]] = {}
    for made in of_type(state, "google_cloudfunctions2_function"):
        config = made.values["service_config"][0]
        secrets = {one["secret"] for one in config["secret_environment_variables"]}
        named[f"serviceAccount:{config['service_account_email']}"] = secrets
        clusters = {one for one in secrets if "kubeconfig" in one or "token" in one}
        if "alert_fanout" in made.address and clusters:
            yield f"{made.address} faces outward and holds {', '.join(sorted(clusters))}"
        if "billing_" in made.address and (acting := {one for one in clusters if not one.endswith("-read")}):
            yield f"{made.address} only reads and holds {', '.join(sorted(acting))}"
    for made in of_type(state, "google_secret_manager_secret_iam_member"):
        if made.values["secret_id"] not in named.get(made.values["member"], ()):
            yield f"{made.address}: {made.values['member']} reads {made.values['secret_id']} and does not name it"


def what_faces_outward_writes_no_books(state: State) -> Iterator[str]:
    """alert_fanout has rights in the alerts' database alone, and every right in a database names one."""
    facing = {
        f"serviceAccount:{made.values['service_config'][0]['service_account_email']}"
        for made in of_type(state, "google_cloudfunctions2_function")
        if "alert_fanout" in made.address
    }
    for made in of_type(state, "google_project_iam_member"):
        if made.values["role"].startswith("roles/datastore."):
            conditions = [one["expression"] for one in made.values["condition"]]
            if not conditions:
                yield f"{made.address} is for every database"
            if made.values["member"] in facing and not all(one.endswith('-alerts"') for one in conditions):
                yield f"{made.address}: alert_fanout may write where budgets are"


def the_bill_reaches_who_counts(state: State) -> Iterator[str]:
    """Where a bill is named, billing_import reads it, and nobody else."""
    for made in of_type(state, "google_cloudfunctions2_function"):
        knows = "PILOTLIGHT_BILLS" in made.values["service_config"][0]["environment_variables"]
        if knows != ("billing_import" in made.address):
            yield f"{made.address} {'knows' if knows else 'does not know'} the bill"


def who_reads_the_bill_reaches_no_cluster(state: State) -> Iterator[str]:
    """billing_import holds no kubeconfig, no token of a cloud that does not bill, and is let into no cluster of GKE."""
    accounts = set()
    for made in of_type(state, "google_cloudfunctions2_function"):
        config = made.values["service_config"][0]
        if "billing_import" in made.address:
            accounts.add(f"serviceAccount:{config['service_account_email']}")
            for secret in config["secret_environment_variables"]:
                yield f"{made.address} holds {secret['secret']}"
    for made in of_type(state, "google_project_iam_member"):
        place = made.address.partition("[")[0].rpartition(".")[2]
        if made.values["member"] in accounts and place in ("gke", "reads_pools", "changes_pools"):
            yield f"{made.address}: billing_import reaches clusters, and has nothing to do there"


def modules_leave_providers_to_their_callers(tree: Path) -> Iterator[str]:
    """No provider is configured inside what others may use as a module."""
    for path in sorted([*tree.glob("google*/*.tf"), *tree.glob("modules/*/*.tf")]):
        if re.search(r'^provider "', path.read_text(), re.M):
            yield f"{path.relative_to(tree)} configures a provider"


def production_is_a_deployment_of_its_own(tree: Path) -> Iterator[str]:
    """prod.tfvars shares no value with dev.tfvars that makes them one: project, policy, cluster, account at AWS."""
    of_aws = tree / "google_aws" / "root"
    for root, own in ((tree, "cluster_id"), (of_aws, "account_id")):
        texts = [(root / "environments" / f"{name}.tfvars").read_text() for name in ("dev", "prod")]
        for what in ("project", "policy_file", own):
            dev, prod = (re.findall(rf'\b{what} *= *"([^"]*)"', text) for text in texts)
            if dev == prod:
                yield f"{what} is {dev} in both"


def called(root: Path) -> list[Path]:
    """A folder and every module that it calls, and that these call."""
    found = [root]
    for here in found:
        text = "".join(file.read_text() for file in sorted(here.glob("*.tf")))
        new = {(here / source).resolve() for source in re.findall(r'^ +source += "(\.[^"]+)"', text, re.M)}
        found += sorted(new - {*found})
    return found


def nothing_of_aws_is_needed_on_google_alone(tree: Path) -> Iterator[str]:
    """The root on Google, its module and every module that these call name no provider, resource or data of AWS."""
    for path in sorted({*called(tree.resolve()), *called((tree / "google").resolve())}):
        for file in sorted(path.glob("*.tf")):
            if found := re.search(r'hashicorp/aws|(provider|resource|data) "aws|provider += aws', file.read_text()):
                yield f"{file.relative_to(tree.resolve())} speaks of {found[0]}"


EXPORTS = {"storage.objects.create", "storage.objects.list", "storage.objects.setRetention"}
"""What whoever carries the audit chain out may do in its bucket: never change, delete or unlock what is there."""


def who_exports_the_audit_only_adds(state: State) -> Iterator[str]:
    """The exporter reads the database of decisions and adds objects, with their lock, to one bucket; and no more."""
    (role,) = (m for m in of_type(state, "google_project_iam_custom_role") if ".audit_export" in m.address)
    for permission in sorted(set(role.values["permissions"]) ^ EXPORTS):
        yield f"{role.address} {'may not' if permission in EXPORTS else 'allows'} {permission}"
    in_bucket = [m for m in of_type(state, "google_storage_bucket_iam_member") if m.values["bucket"] == "acme-audit"]
    exporters = {made.values["member"] for made in in_bucket}
    for made in in_bucket:
        if made.values["role"] != role.values["name"]:
            yield f"{made.address} gives {made.values['role']}"
    rights = [made for made in of_type(state, "google_project_iam_member") if made.values["member"] in exporters]
    for made in rights:
        if made.values["role"] != "roles/datastore.viewer" or not made.values["condition"]:
            yield f"{made.address} gives {made.values['role']}"
    if not in_bucket or not rights:
        yield "nobody may carry the audit chain out"


def audit_logs_are_claimed_where_they_are_kept(tree: Path) -> Iterator[str]:
    """Reads are in Google's audit logs only where a project asks for that."""
    texts = {path: path.read_text() for path in tree.rglob("*.tf")}
    if not any('"google_project_iam_audit_config"' in text for text in texts.values()):
        for path, text in texts.items():
            if re.search("audit logs", text, re.IGNORECASE):
                yield f"{path.relative_to(tree)} speaks of audit logs that nobody keeps"


def the_runtime_is_the_bundles(tree: Path) -> Iterator[str]:
    """A function runs the Python that its bundle's bytecode is of."""
    text = (tree / "modules" / "function" / "main.tf").read_text()
    bundler = (Path(__file__).resolve().parents[3] / "scripts" / "bundle.py").read_text()
    wanted = re.findall(r"^RUNTIME = \((\d+), (\d+)\)", bundler, re.M)
    if [tuple(found) for found in re.findall(r'runtime += "python(\d)(\d+)"', text)] != wanted:
        yield f"modules/function does not run Python {wanted}"


def pushes_come_with_tokens(state: State) -> Iterator[str]:
    """Whoever pushes may make the token that it pushes with: an agent that was asked for has no role by itself."""
    agents = {made.values["member"] for made in of_type(state, "google_project_service_identity")}
    may = {
        right.values["service_account_id"]
        for right in of_type(state, "google_service_account_iam_member")
        if right.values["member"] in agents
    }
    names = {made.values["email"]: made.values["name"] for made in of_type(state, "google_service_account")}
    for made in of_type(state, "google_pubsub_subscription"):
        for push in made.values["push_config"]:
            if names[push["oidc_token"][0]["service_account_email"]] not in may:
                yield f"{made.address} pushes with a token that Pub/Sub may not make"


ENCRYPTED = {
    "google_artifact_registry_repository": "kms_key_name",
    "google_cloudfunctions2_function": "kms_key_name",
    "google_firestore_database": "cmek_config.kms_key_name",
    "google_pubsub_topic": "kms_key_name",
    "google_storage_bucket": "encryption.default_kms_key_name",
}
"""What keeps something, and where it says whose key it is kept under."""
KEEPERS = ("artifactregistry", "cloudfunctions", "firestore", "pubsub", "run", "secretmanager")


def _under(values: Mapping[str, Any], path: str) -> Any:
    """The value at a path through blocks, or nothing where one is left out."""
    name, _, rest = path.partition(".")
    found = values.get(name)
    return _under(found[0], rest) if rest and found else None if rest else found


def all_is_kept_under_the_key(state: State) -> Iterator[str]:
    """With a key of one's own nothing is kept under another, and every agent that encrypts may use it."""
    keys = {made.values["crypto_key_id"] for made in of_type(state, "google_kms_crypto_key_iam_member")}
    for made in state:
        if made.mode == "managed" and made.type in ENCRYPTED and _under(made.values, ENCRYPTED[made.type]) not in keys:
            yield f"{made.address} is kept under Google's key"
    may = {made.address.partition('["')[2].rstrip('"]') for made in of_type(state, "google_kms_crypto_key_iam_member")}
    for api in KEEPERS:
        if f"{api}.googleapis.com" not in may:
            yield f"the agent of {api} may not use the key"


GRAPH: Sequence[Callable[[Graph], Iterator[str]]] = (comes_after_its_api, builds_wait_for_rights)
STATE: Sequence[Callable[[State], Iterator[str]]] = (
    has_its_api,
    builds_read_their_sources,
    no_bucket_outlives_its_objects,
    clusters_are_in_their_projects,
    instances_have_addresses,
    silence_is_told_of_what_never_spoke,
    each_reads_the_secrets_it_names,
    what_faces_outward_writes_no_books,
    the_bill_reaches_who_counts,
    who_reads_the_bill_reaches_no_cluster,
    pushes_come_with_tokens,
    all_is_kept_under_the_key,
    who_exports_the_audit_only_adds,
)
TEXT: Sequence[Callable[[Path], Iterator[str]]] = (
    budgets_are_asked_in_a_projects_name,
    modules_leave_providers_to_their_callers,
    nothing_of_aws_is_needed_on_google_alone,
    production_is_a_deployment_of_its_own,
    audit_logs_are_claimed_where_they_are_kept,
    the_runtime_is_the_bundles,
)
