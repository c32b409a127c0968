"""Taking pools over and giving them back: on moto's Auto Scaling, with an API server beside it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import boto3
import msgspec
import pytest
from api_server import ApiServer, api_server
from api_store import BUILT_IN, Json
from manifests import HERE, objects
from typer.testing import CliRunner

from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import BadInput, Failed, PilotlightError
from pilotlight.facts.limits.pool_handover import Taken
from pilotlight.state_schema.cluster_records import TAKEN
from pilotlight.tools.cli.install import handover_commands
from pilotlight.tools.cli.main import build
from pilotlight.tools.install import cloud_handovers

REGION, ZONES = "us-east-1", ["us-east-1a", "us-east-1b"]
KEYS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing", "region_name": REGION}
CLAIM, OWNED = "k8s.io/cluster-autoscaler/enabled", "k8s.io/cluster-autoscaler/prod"
HINT = "k8s.io/cluster-autoscaler/node-template/label/gpu"
MARK = "pilotlight.dev/handed-back"
POLICY = """
version: 1
pools:
  t4: {{cloud: eks, cluster_pool: {group}, instance_type: g4dn.xlarge, max: 4, on_silence: {silence}}}
"""


class Site(NamedTuple):
    """A group at moto that cluster-autoscaler keeps, a cluster, and a person's terminal."""

    group: str
    client: Any
    server: ApiServer
    home: Path

    def run(self, *words: str) -> str:
        """What a command prints; what it raises goes on to the test."""
        return CliRunner().invoke(build([words[0]]), list(words), catch_exceptions=False).stdout

    @property
    def now(self) -> Json:
        """The group as AWS tells it."""
        found: Json = self.client.describe_auto_scaling_groups(AutoScalingGroupNames=[self.group])
        return dict(found["AutoScalingGroups"][0])

    @property
    def settings(self) -> Json:
        """What is taken over and given back: sizes, protection, what is suspended, tags."""
        group = self.now
        hooks = self.client.describe_lifecycle_hooks(AutoScalingGroupName=self.group)["LifecycleHooks"]
        return {
            "sizes": (group["MinSize"], group["MaxSize"]),
            "protects": group["NewInstancesProtectedFromScaleIn"],
            "suspended": [p["ProcessName"] for p in group["SuspendedProcesses"]],
            "tags": sorted((t["Key"], t["Value"], t["PropagateAtLaunch"]) for t in group["Tags"] if t["Key"] != MARK),
            "hooks": [h["LifecycleHookName"] for h in hooks],
        }

    @property
    def marked(self) -> bool:
        """Whether the group says that it was handed back."""
        return any(tag["Key"] == MARK for tag in self.now["Tags"])

    def beat(self, ago: timedelta | None) -> None:
        """The Lease as it was renewed so long ago."""
        spec = {} if ago is None else {"renewTime": (datetime.now(UTC) - ago).isoformat()}
        meta = {"name": "pilotlight-placement", "namespace": "pilotlight"}
        self.server.add({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": meta, "spec": spec})

    def policy(self, silence: str) -> None:
        """The policy, with what silence does."""
        (self.home / "policy.yaml").write_text(POLICY.format(group=self.group, silence=silence))

    def age(self, ago: timedelta) -> None:
        """As if the pool had been taken over so long ago."""
        made = self.server.store.get("configmaps", "pilotlight-takeover", "pilotlight")
        record = json.loads(made["data"]["t4"])
        record["at"] = (datetime.now(UTC) - ago).isoformat()
        made["data"]["t4"] = json.dumps(record)


@pytest.fixture
def site(dynamodb_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A group of two zones with a min, a max of its own, two tags of cluster-autoscaler and a hint."""
    clients = [boto3.client(name, endpoint_url=dynamodb_server, **KEYS) for name in ("autoscaling", "ec2")]
    client, name, image = clients[0], f"gpu-{uuid4()}", clients[1].describe_images()["Images"][0]["ImageId"]
    client.create_launch_configuration(LaunchConfigurationName=name, ImageId=image, InstanceType="g4dn.xlarge")
    client.create_auto_scaling_group(
        AutoScalingGroupName=name,
        LaunchConfigurationName=name,
        MinSize=0,
        MaxSize=9,
        DesiredCapacity=0,
        AvailabilityZones=ZONES,
        Tags=[
            {"Key": CLAIM, "Value": "true", "PropagateAtLaunch": False},
            {"Key": OWNED, "Value": "owned", "PropagateAtLaunch": True},
            {"Key": HINT, "Value": "t4", "PropagateAtLaunch": False},
        ],
    )
    with api_server() as server:
        made = Site(name, client, server, tmp_path)
        made.policy("hand-back")
        made.beat(timedelta(seconds=30))
        for key, value in {
            "PILOTLIGHT_HOME": str(tmp_path),
            "PILOTLIGHT_POLICY": str(tmp_path / "policy.yaml"),
            "PILOTLIGHT_STATE": f"sqlite:{tmp_path / 's.db'}",
            "PILOTLIGHT_CLUSTER": "prod",
            "PILOTLIGHT_API": "kubeconfig-env:K",
            "PILOTLIGHT_POOLS": f"asg:{REGION}",
            "K": server.kubeconfig(),
            "AWS_ENDPOINT_URL": dynamodb_server,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
        }.items():
            monkeypatch.setenv(key, value)
        yield made
    client.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)


ROLE = "arn:aws:iam::123456789012:role/keeper"


def test_a_pool_of_another_account_is_given_back_as_it_was_taken(site: Site) -> None:
    """The record says by which role; whoever gives it back acts as that, or by a credential of its own."""
    site.run("takeover", "--role-arn", ROLE)
    record = site.server.store.get("configmaps", "pilotlight-takeover", "pilotlight")["data"]["t4"]
    assert json.loads(record)["role"] == ROLE
    taken = msgspec.json.decode(record, type=Taken)
    asked: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cloud_handovers, "handover_at", lambda *words: asked.append(words[-1]))
        for named in (None, "own", "arn:other"):
            handover_commands.cloud_of(named, taken)
    assert asked == [ROLE, "", "arn:other"]
    site.run("handback", "--role-arn", "own")
    assert site.marked


def test_a_dry_run_changes_nothing(site: Site) -> None:
    """It says each setting; neither the group nor the cluster nor the state is written."""
    before = site.settings
    said = site.run("takeover", "--dry-run")
    assert (f"would set tag {CLAIM} true -> (none)" in said, "would set max 9 -> 4" in said) == (True, True)
    assert said.endswith("nothing was changed\n")
    assert site.settings == before
    assert site.server.lines("^(POST|PATCH|PUT|DELETE)") == []
    assert list(TAKEN.scan(SqliteState(site.home / "s.db"), "")) == []


def test_a_pool_is_taken_over_and_given_back_as_it_was(site: Site) -> None:
    """Tags, sizes, protection and spreading are Pilotlight's, then the owner's again, to the last flag; hints stay."""
    before = site.settings
    site.run("takeover", "--pool", "t4")
    taken = site.settings
    assert (taken["sizes"], taken["protects"], taken["suspended"]) == ((0, 4), True, ["AZRebalance"])
    assert [key for key, _, _ in taken["tags"]] == [HINT]
    assert site.run("takeover") == "t4: is Pilotlight's already\nnothing was changed\n"
    said = site.run("handback", "--pool", "t4")
    assert said.splitlines()[0].startswith(f"t4: set tag {MARK} (none) -> 20")
    assert (site.settings, site.marked) == (before, True)
    assert site.run("handback") == "t4: is given back already\nnothing was changed\n"
    site.run("takeover")
    assert (site.settings, site.marked) == (taken, False)


def test_what_it_was_is_written_before_anything_is_changed(site: Site) -> None:
    """In the cluster and in the state; where the cluster cannot be written nothing is changed."""
    before = site.settings
    site.server.fail(403, on="configmaps", times=9)
    with pytest.raises(Exception, match="configmaps"):
        site.run("takeover")
    assert site.settings == before
    site.server._faults.clear()
    site.run("takeover")
    (kept,) = TAKEN.scan(SqliteState(site.home / "s.db"), "prod/")
    written = site.server.store.get("configmaps", "pilotlight-takeover", "pilotlight")["data"]
    assert {s["name"]: s["was"] for s in json.loads(written["t4"])["settings"]}["max"] == "9"
    assert kept.value.group == site.group


SILENCES = {
    "awake half a minute ago": ("hand-back", timedelta(seconds=30), False),
    "silent for eleven minutes": ("hand-back", timedelta(minutes=11), True),
    "silent for an hour in a pool that is kept": ("keep", timedelta(hours=1), False),
    "never heard of since it was taken over": ("hand-back", None, True),
}


@pytest.mark.parametrize(("silence", "ago", "given"), SILENCES.values(), ids=SILENCES.keys())
def test_silence_gives_back_what_asks_for_it(site: Site, silence: str, ago: timedelta | None, given: bool) -> None:
    """By the Lease, the ConfigMap and the cloud alone: no policy, no state, no word of where the pools are."""
    before = site.settings
    site.policy(silence)
    site.run("takeover")
    site.age(timedelta(days=1))
    site.beat(ago)
    (site.home / "policy.yaml").write_text("no policy")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PILOTLIGHT_POOLS", "PILOTLIGHT_STATE", "PILOTLIGHT_POLICY"):
            patch.delenv(name)
        assert "would set" in site.run("handback", "--if-silent", "10m", "--dry-run") if given else True
        site.run("handback", "--if-silent", "10m")
    assert (site.marked, site.settings == before) == (given, given)
    told = [asked.json()["message"] for asked in site.server.requests if asked.line.endswith("/events")]
    assert [line.startswith("t4 was handed back: ") for line in told] == [True] * given


def test_a_pool_that_was_just_taken_over_is_not_silent(site: Site) -> None:
    """Whoever takes a pool back has ten minutes until Pilotlight must be heard of."""
    site.beat(timedelta(days=3))
    site.run("takeover")
    assert site.run("handback", "--if-silent", "10m") == "nothing was changed\n"


def test_giving_back_asks_for_no_right_too_many(site: Site) -> None:
    """In the cluster what its Role grants, at the cloud what its JSON grants, and nothing of a node or a pod."""
    site.run("takeover")
    site.age(timedelta(days=1))
    site.beat(timedelta(hours=1))
    site.server.requests.clear()
    site.run("handback", "--if-silent", "10m")
    place = "/api/v1/namespaces/pilotlight"
    assert set(site.server.lines()) == {
        "GET /apis/coordination.k8s.io/v1/namespaces/pilotlight/leases/pilotlight-placement",
        f"GET {place}/configmaps/pilotlight-takeover",
        f"PATCH {place}/configmaps/pilotlight-takeover",
        f"POST {place}/events",
    }


def test_without_its_lease_nothing_is_given_back(site: Site) -> None:
    """Nobody knows of silence then: that is said, and is no silence."""
    site.run("takeover")
    site.age(timedelta(days=1))
    site.server.store.drop(site.server.store.resource("leases"), ("pilotlight", "pilotlight-placement"))
    with pytest.raises(BadInput, match="without the Lease"):
        site.run("handback", "--if-silent", "10m")
    assert not site.marked


def test_nodes_that_run_stay(site: Site) -> None:
    """Four run: no max goes below that, nothing is spread anew; the watchman gives both back when they are gone."""
    site.client.update_auto_scaling_group(AutoScalingGroupName=site.group, MaxSize=3, MinSize=0)
    site.policy("hand-back")
    site.run("takeover")
    site.client.set_desired_capacity(AutoScalingGroupName=site.group, DesiredCapacity=4)
    said = site.run("handback")
    assert "max is left at 4: it has 4 nodes, and a max of 3 would end some" in said
    assert "rebalances is left at false" in said
    assert (site.now["MaxSize"], len(site.now["Instances"])) == (4, 4)
    assert [tag["Key"] for tag in site.now["Tags"] if tag["Key"] == CLAIM] == [CLAIM]
    for one in site.now["Instances"]:
        site.client.terminate_instance_in_auto_scaling_group(
            InstanceId=one["InstanceId"], ShouldDecrementDesiredCapacity=True
        )
    site.age(timedelta(days=1))
    site.beat(timedelta(hours=1))
    site.run("handback", "--if-silent", "10m")
    assert (site.now["MaxSize"], site.settings["suspended"]) == (3, [])


def test_what_somebody_set_since_is_theirs(site: Site) -> None:
    """A max that a person raised after the takeover is left, and said with what it was."""
    site.run("takeover")
    site.client.update_auto_scaling_group(AutoScalingGroupName=site.group, MaxSize=6)
    assert "max is left at 6: somebody set it to 6 since; it was 9" in site.run("handback")
    assert site.now["MaxSize"] == 6


def test_our_hook_goes_when_nobody_answers_it_and_comes_back(site: Site) -> None:
    """Another autoscaler's releases would wait an hour for an answer of ours; taking over puts it back as it was."""
    hook = {"LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING", "DefaultResult": "CONTINUE"}
    for name in ("pilotlight", "theirs"):
        site.client.put_lifecycle_hook(
            AutoScalingGroupName=site.group, LifecycleHookName=name, HeartbeatTimeout=1800, **hook
        )
    site.run("takeover")
    site.run("handback")
    assert site.settings["hooks"] == ["theirs"]
    site.run("takeover")
    found = site.client.describe_lifecycle_hooks(AutoScalingGroupName=site.group)["LifecycleHooks"]
    (ours,) = [each for each in found if each["LifecycleHookName"] == "pilotlight"]
    assert (ours["HeartbeatTimeout"], ours["DefaultResult"]) == (1800, "CONTINUE")


def test_what_was_cut_off_is_gone_on_with(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its calls fail after the first two: the next run gives the rest back, and forgets nothing that was."""
    before = site.settings
    site.run("takeover")
    from pilotlight.errors import Unsure
    from pilotlight.tools.install.asg_handover import AsgHandover

    put, calls = AsgHandover.put, iter((True, True, False))

    def cut(self: AsgHandover, group: str, name: str, to: str) -> None:
        if not next(calls, False):
            raise Unsure("AWS does not answer")
        put(self, group, name, to)

    with monkeypatch.context() as patch:
        patch.setattr(AsgHandover, "put", cut)
        with pytest.raises(Failed, match="not given back whole: 1 pool"):
            site.run("handback")
    assert site.settings != before
    site.run("handback")
    assert site.settings == before


def test_a_record_that_cannot_be_read_is_said_and_left(site: Site) -> None:
    """The others are given back; the command fails."""
    site.run("takeover")
    site.server.store.get("configmaps", "pilotlight-takeover", "pilotlight")["data"]["other"] = "{"
    with pytest.raises(Failed):
        site.run("handback")
    assert site.marked


WRONG = {
    ("takeover", "--pool", "a100"): "no pool 'a100' in the policy",
    ("handback", "--pool", "a100"): "pool a100 was never taken over: there is nothing to give back; no pool was",
    ("handback", "--if-silent", "soon"): "--if-silent 'soon' is no duration",
}


@pytest.mark.parametrize(("words", "why"), WRONG.items(), ids=[" ".join(words) for words in WRONG])
def test_what_cannot_be_meant_is_refused(site: Site, words: tuple[str, ...], why: str) -> None:
    """One line that names it."""
    with pytest.raises(BadInput, match=why):
        site.run(*words)


def test_what_was_given_back_whole_is_its_owners(site: Site) -> None:
    """However long the silence lasts: a max that the owner sets afterwards stays, whatever Pilotlight's was."""
    site.run("takeover")
    site.age(timedelta(days=1))
    site.beat(timedelta(hours=1))
    site.run("handback", "--if-silent", "10m")
    site.client.update_auto_scaling_group(AutoScalingGroupName=site.group, MaxSize=4)
    assert site.run("handback", "--if-silent", "10m") == "nothing was changed\n"
    assert site.now["MaxSize"] == 4


KEYS_OF_OURS = ("pilotlight.dev/draining", "pilotlight.dev/home")


def _node(name: str, pool: str, *keys: str) -> Json:
    """A node of a pool with these taints."""
    taints = [{"key": key, "value": "x", "effect": "NoSchedule"} for key in keys]
    meta = {"name": name, "labels": {"pilotlight.dev/pool": pool}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {"taints": taints}}


def _taints(site: Site, name: str) -> list[str]:
    return [each["key"] for each in site.server.store.get("nodes", name)["spec"].get("taints", [])]


def test_nodes_of_a_pool_that_is_given_back_are_opened(site: Site) -> None:
    """Every taint of ours comes off them, another's stays, and so do ours on nodes of other pools."""
    site.run("takeover")
    site.server.add(_node("a", "t4", "team", *KEYS_OF_OURS), _node("b", "other", *KEYS_OF_OURS))
    dry = site.run("handback", "--dry-run")
    assert "node a: would set our taints pilotlight.dev/home -> (none)" in dry
    assert _taints(site, "a") == ["team", *KEYS_OF_OURS]
    said = site.run("handback")
    assert "t4: its nodes are born with the taint pilotlight.dev/home" in said
    assert (_taints(site, "a"), _taints(site, "b")) == (["team"], [*KEYS_OF_OURS])


def test_a_release_that_goes_opens_nodes_and_leaves_the_rest(site: Site) -> None:
    """With --only-taints no object of ours goes, and no group is changed; it patches nodes and names what stays."""
    _installed(site)
    wrote = {
        "metadata": {"name": "pilotlight-gpus", "namespace": "ml", "labels": {"app.kubernetes.io/name": "pilotlight"}}
    }
    site.server.add({"apiVersion": "v1", "kind": "ConfigMap", **wrote})
    site.run("takeover")
    before = site.settings
    site.server.requests.clear()
    said = site.run("uninstall", "--only-taints")
    assert "reopen Node n: it had the taint pilotlight.dev/draining" in said
    assert "reopen Node n: it had the taint pilotlight.dev/home" in said
    assert "keep Pool t4: its nodes are born with the taint pilotlight.dev/home" in said
    assert (_taints(site, "n"), site.settings) == ([], before)
    assert {line.partition(" ")[0] for line in site.server.lines()} == {"GET", "PATCH"}
    assert all("/api/v1/nodes" in line for line in site.server.lines() if line.startswith("PATCH"))
    kept = [line for line in said.splitlines() if "pilotlight manifests" in line]
    assert [line.partition(":")[0] for line in kept] == ["keep ConfigMap ml/pilotlight-gpus"]
    assert "kubectl delete configmaps pilotlight-gpus -n ml takes it out" in kept[0]


@pytest.mark.parametrize("words", [["uninstall"], ["uninstall", "--only-taints"], ["handback"]])
@pytest.mark.parametrize(("fault", "ends"), [(404, True), (409, False), (500, False)])
def test_a_node_that_cannot_be_opened_keeps_no_other_closed(
    site: Site, words: list[str], fault: int, ends: bool
) -> None:
    """One goes between the list and its write, is changed at each try, or is refused: the others are open, and the run
    ends well where only a node went."""
    _installed(site)
    site.run("takeover")
    site.server.add(*(_node(name, "t4", *KEYS_OF_OURS) for name in ("a", "b", "z")))
    site.server.fail(fault, on="PATCH /api/v1/nodes/b", times=99)
    if ends:
        site.run(*words)
    else:
        with pytest.raises(PilotlightError):
            site.run(*words)
    assert [_taints(site, name) for name in ("a", "n", "z")] == [[], [], []]
    site.server.forget_faults()
    site.run(*words)
    assert _taints(site, "b") == []


def test_a_karpenter_that_does_not_answer_keeps_no_node_closed(site: Site) -> None:
    """A release that goes opens its nodes though limits of NodePools cannot be read, and says that it is not done."""
    _installed(site)
    site.server.fail(500, on="karpenter", times=99)
    with pytest.raises(PilotlightError):
        site.run("uninstall", "--only-taints")
    assert _taints(site, "n") == []


def test_a_release_that_goes_names_the_queues_that_wait_for_it(site: Site) -> None:
    """With --only-taints our check stays on Kueue's queues, which admit nothing then: each is named."""
    for name in ("kueue", "kueue-flavors", "kueue-queues", "kueue-local-queues", "kueue-checks"):
        site.server.store.serve(name)
    rules = {"admissionChecksStrategy": {"admissionChecks": [{"name": "pilotlight"}]}}
    for name, spec in (("ours", rules), ("free", {})):
        queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": name}}
        site.server.add({**queue, "spec": spec})
    said = site.run("uninstall", "--only-taints")
    kept = [line for line in said.splitlines() if line.startswith("keep ClusterQueue")]
    assert [line.partition(":")[0] for line in kept] == ["keep ClusterQueue ours"]
    assert "`pilotlight kueue handback` takes it off" in kept[0]


def _installed(site: Site) -> None:
    """Both watchmen, our account, and a node that we keep closed."""
    for name in ("namespace.yaml", "rbac/observe.yaml", "placement/watchman.yaml", "handback/watchman.yaml"):
        site.server.add(*objects(HERE / name))
    site.server.add(_node("n", "t4", *KEYS_OF_OURS))


def test_uninstall_leaves_nothing_of_ours(site: Site) -> None:
    """The pool is its owner's, to the last tag, and the cluster has no object, taint or record of ours any more."""
    before = site.settings
    _installed(site)
    site.run("takeover")
    dry = site.run("uninstall", "--dry-run").splitlines()
    assert (dry[-2:], site.marked) == (["would remove Namespace pilotlight", "nothing was changed"], False)
    assert site.settings != before
    said = site.run("uninstall")
    assert (site.settings, site.marked) == (before, False)
    assert "remove tag pilotlight.dev/handed-back: of group" in said
    left = [
        each["metadata"]["name"]
        for resource in BUILT_IN
        for each in site.server.store.list(resource, "", "", "")
        if each["metadata"]["name"].startswith("pilotlight") and resource.kind != "Event"
    ]
    assert left == []
    assert site.server.store.get("nodes", "n")["spec"].get("taints") in (None, [])
    assert site.run("uninstall") == "nothing of Pilotlight's is on this cluster\n"


def test_uninstall_frees_kueues_queues(site: Site) -> None:
    """A queue whose check nobody answers admits nothing: ours comes off, another's stays."""
    site.server.store.serve("kueue-queues")
    checks = [{"name": "pilotlight"}, {"name": "another"}]
    spec = {"admissionChecksStrategy": {"admissionChecks": checks}}
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": spec}
    site.server.add(queue)
    assert "would take our check off ClusterQueue q" in site.run("uninstall", "--dry-run")
    assert "take our check off ClusterQueue q" in site.run("uninstall")
    left = site.server.store.get("clusterqueues", "q")["spec"]["admissionChecksStrategy"]["admissionChecks"]
    assert left == [{"name": "another"}]


def test_uninstall_ends_no_node(site: Site) -> None:
    """While nodes run beside AZRebalance the record and the mark stay, the command fails and says why; then it ends."""
    before = site.settings
    site.run("takeover")
    site.client.set_desired_capacity(AutoScalingGroupName=site.group, DesiredCapacity=1)
    with pytest.raises(Failed, match="rebalances is left at false: it has 1 node, "):
        site.run("uninstall")
    (one,) = site.now["Instances"]
    assert site.marked
    site.client.terminate_instance_in_auto_scaling_group(
        InstanceId=one["InstanceId"], ShouldDecrementDesiredCapacity=True
    )
    site.run("uninstall")
    assert (site.settings, site.marked) == (before, False)
