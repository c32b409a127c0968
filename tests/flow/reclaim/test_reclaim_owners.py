"""Idle owners from the notice to rest and back, in the world and on a stand-in API server."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from api_server import ApiServer, api_server
from stage import Stage

from pilotlight.adapters.cluster.kubernetes import pod_owners
from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.errors import BadRequest, Conflict, Forbidden, Unavailable
from pilotlight.facts.labels import COUNT_BEFORE, RECLAIM, SNOOZE_UNTIL
from pilotlight.facts.messages import Tick
from pilotlight.facts.policy import ClassPolicy, ReclaimPolicy
from pilotlight.facts.utilisation.reclaim_steps import OwnerKind, PodOwner, Reclaim
from pilotlight.facts.utilisation.telemetry import Telemetry
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.reclaim.reclaim_owners import watch
from pilotlight.flow.records import brake_records, ledger
from pilotlight.state_schema.alert_records import RECLAIM as TABLE
from pilotlight.state_schema.alert_records import RECLAIM_LOOK as LOOK
from pilotlight.units import HOUR, Seconds
from pilotlight.world.world_cluster import WorldCluster

RULE = ReclaimPolicy(idle=1200, grace=600, who="all")


class WorldTelemetry:
    """What the world's GPUs did; or an outage, or whatever a test puts in its place."""

    def __init__(self, cluster: WorldCluster) -> None:
        self.read: Any = cluster.telemetry

    def past(self, end_s: float) -> Telemetry:
        """As ``read`` gives it, by ten minutes."""
        found: Telemetry = self.read(end_s - 24 * HOUR, end_s, 600.0)
        return found


class Site(Stage):
    """A notebook that works for five minutes and then holds its GPU, looked at every minute."""

    def __init__(self, workload_class: str = "notebook", busy_s: Seconds | None = 300, **rules: Any) -> None:
        own = {workload_class: ClassPolicy(gpu_models="any", idle_timeout=300, reclaim=RULE)}
        super().__init__(classes=own, **rules)
        assert isinstance(self.deps.cluster, WorldCluster)
        self.telemetry = WorldTelemetry(self.deps.cluster)
        self.deps = replace(self.deps, telemetry=self.telemetry)
        self.did: list[str] = []
        pod = self.submit("ada", workload_class=workload_class, team="vision", run_s=30 * 86_400)
        self.job = next(iter(self.world.pending.values()))
        self.job.busy_s = busy_s
        self.event(pod)

    def bill(self) -> None:
        """One billing tick."""
        self.did += [line for line in billing(self.deps, Tick(cluster="c")).did if "ada" in line or "telemetry" in line]

    def pass_(self, minutes: int) -> None:
        """So many minutes with both ticks."""
        self.minutes(minutes, self.bill)

    @property
    def record(self) -> Reclaim | None:
        """The owner's."""
        return next((entry.value for entry in TABLE.scan(self.deps.state, "c/")), None)

    @property
    def told(self) -> list[str]:
        """Kinds of what people were told of it."""
        return [a.kind + (", over" if a.resolved else "") for a in self.alerts if a.kind.startswith("reclaim")]

    @property
    def filed(self) -> list[str]:
        """Each step's verdict in the audit chain."""
        records = ledger.filed_records(self.deps.state, "c")
        return [r.plan.pods[0].verdict for r in records if r.flow == "reclaim"]


def test_an_idle_notebook_is_told_put_to_rest_and_its_node_goes() -> None:
    """Twenty minutes of silence, ten of grace; the notice is an alert and an Event, each step is filed."""
    site = Site()
    site.pass_(35)
    assert site.told == ["reclaim-idle"]
    assert isinstance(site.deps.cluster, WorldCluster)
    [event] = [told for told in site.deps.cluster.told if told[2] == "GpuIdle"]
    assert event[1] == "ml/ada"
    assert "pilotlight reclaim snooze ml/Notebook/ada --for 8h" in event[3]
    assert site.world.running
    site.pass_(25)
    assert not site.world.running
    assert site.world.resting
    assert site.told == ["reclaim-idle", "reclaim-rested"]
    assert site.filed == ["noticed", "rested"]
    assert site.record is not None
    assert site.record.stage == "resting"
    assert site.nodes("one") == 0


def test_woken_it_has_its_pods_again_and_is_told_anew_before_it_rests_again() -> None:
    """Woken by whomever: its record ends, and its silence counts from its new start."""
    site = Site()
    site.pass_(60)
    site.world.wake(site.job)
    site.job.busy_s = 300
    site.pass_(20)
    assert site.world.running
    assert site.record is None
    assert site.filed == ["noticed", "rested", "woken"]
    site.pass_(60)
    assert site.filed == ["noticed", "rested", "woken", "noticed", "rested"]


def test_what_works_is_never_told() -> None:
    """An hour of a notebook at work."""
    site = Site(busy_s=None)
    site.pass_(60)
    assert (site.told, site.filed, len(site.world.running)) == ([], [], 1)


def test_a_snooze_keeps_it_to_its_end() -> None:
    """By the record, as the command writes it."""
    site = Site()
    site.pass_(32)
    [entry] = TABLE.scan(site.deps.state, "c/")
    until = site.deps.now() + timedelta(minutes=40)
    TABLE.put(site.deps.state, entry.name, msgspec.structs.replace(entry.value, snoozed_until=until, due_at=until))
    site.pass_(35)
    assert site.world.running
    site.pass_(15)
    assert site.world.resting


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(lambda read, *grid: Telemetry(start_s=grid[0], step_s=grid[2]), id="telemetry is absent"),
        pytest.param(lambda read, s, e, step: read(s - 3600, e - 3600, step), id="telemetry is an hour old"),
        pytest.param(lambda read, *grid: _changed(read(*grid), lambda v: -abs(v) - 0.1), id="every value is negative"),
        pytest.param(lambda read, *grid: _doubled(read(*grid)), id="every series is there twice"),
        pytest.param(lambda read, *grid: _gap(read(*grid)), id="the last five minutes are missing"),
    ],
)
def test_telemetry_in_which_nobody_can_trust_puts_nothing_to_rest(odd: Any) -> None:
    """Neither before nor after its notice."""
    site, early = Site(), Site()
    read = early.telemetry.read
    early.telemetry.read = lambda *grid: odd(read, *grid)
    early.pass_(60)
    assert (early.filed, len(early.world.running)) == ([], 1)
    site.pass_(32)
    assert site.told == ["reclaim-idle"]
    good = site.telemetry.read
    site.telemetry.read = lambda *grid: odd(good, *grid)
    site.pass_(60)
    assert len(site.world.running) == 1


def _changed(read: Telemetry, change: Any) -> Telemetry:
    series = tuple(msgspec.structs.replace(s, activity=[change(v) for v in s.activity]) for s in read.series)
    return msgspec.structs.replace(read, series=series)


def _doubled(read: Telemetry) -> Telemetry:
    return msgspec.structs.replace(read, series=read.series * 2)


def _gap(read: Telemetry) -> Telemetry:
    series = [msgspec.structs.replace(s, activity=[*s.activity[:-5], *[float("nan")] * 5]) for s in read.series]
    return msgspec.structs.replace(read, series=tuple(series))


def test_an_outage_of_telemetry_is_said_and_changes_nothing() -> None:
    """Each look says that telemetry is absent, and why."""
    site = Site()

    def down(*grid: float) -> Telemetry:
        raise Unavailable("prometheus does not answer")

    site.telemetry.read = down
    site.pass_(60)
    assert site.did[0] == "telemetry: absent: nothing is put to rest: prometheus does not answer"
    assert len(site.world.running) == 1


def test_serving_is_put_to_rest_by_its_own_rule_alone() -> None:
    """A rule for notebooks touches no deployment that serves."""
    site = Site(workload_class="serving")
    site.deps = replace(
        site.deps, policy=msgspec.structs.replace(site.deps.policy, classes={"notebook": ClassPolicy(reclaim=RULE)})
    )
    site.pass_(60)
    assert (site.filed, len(site.world.running)) == ([], 1)
    own = Site(workload_class="serving")
    own.pass_(60)
    assert own.world.resting


@pytest.mark.parametrize("how", ["mode", "pause"])
def test_where_nothing_may_be_done_it_is_advice(how: str) -> None:
    """In a mode that does not act, or under a pause."""
    site = Site()
    site.pass_(10)
    if how == "mode":
        site.deps = replace(site.deps, mode="advise")
    else:
        brake_records.pause(site.deps.state, "c", "", "price check", site.deps.now())
    site.pass_(60)
    assert (site.told, len(site.world.running)) == (["reclaim-idle"], 1)
    assert site.record is not None
    assert site.record.stage == "advised"


def test_a_worker_that_died_before_it_rested_begins_again() -> None:
    """The cluster does not answer at first: its record says that it is going, and the next look puts it to rest."""
    site = Site()
    site.pass_(32)
    site.fail("rest", Unavailable("the API server does not answer"))
    site.pass_(25)
    assert site.world.resting
    assert site.filed == ["noticed", "rested"]
    assert any("could not be put to rest" in line for line in site.did)


def test_a_refusal_is_told_once_a_day_and_tried_again() -> None:
    """The cluster does not let us: people hear what to apply, and the first look with the right puts it to rest."""
    site = Site()
    site.pass_(32)
    for _ in range(3):
        site.fail("rest", Forbidden("KEDA may scale it"))
    site.pass_(35)
    assert site.told == ["reclaim-idle", "reclaim-refused", "reclaim-rested"]
    [refused] = [alert for alert in site.alerts if alert.kind == "reclaim-refused"]
    how = "pilotlight show infra/kubernetes/rbac/reclaim.yaml | kubectl apply -f -"
    assert (refused.why, refused.how) == ("KEDA may scale it", how)
    assert site.world.resting


def test_only_one_of_two_looks_at_once_does_something() -> None:
    """The second finds the first's mark."""
    site = Site()
    site.pass_(40)
    now = site.deps.now()
    site.wait(300)
    assert (watch(site.deps, now) != (), watch(site.deps, now)) == (True, ())


class Slow:
    """Channels before which a worker stands still, or dies."""

    def __init__(self, site: Site, meanwhile: Any) -> None:
        self.real, self.meanwhile = site.deps.outbox, meanwhile

    def publish(self, alerts: Any) -> None:
        """After what happens meanwhile, once, before an idle owner is told."""
        if "reclaim-idle" in str(alerts):
            meanwhile, self.meanwhile = self.meanwhile, lambda: None
            meanwhile()
        self.real.publish(alerts)


def test_a_look_so_slow_that_the_next_began_tells_nothing_twice() -> None:
    """The other finds that it is being told; both end, and it is one alert and one step in the chain."""
    site = Site()
    site.pass_(24)

    def meanwhile() -> None:
        LOOK.delete(site.deps.state, "c")
        site.wait(60)
        site.did += watch(site.deps, site.deps.now())

    site.deps = replace(site.deps, outbox=Slow(site, meanwhile))
    site.pass_(8)
    assert (site.told, site.filed) == (["reclaim-idle"], ["noticed"])
    assert site.record is not None
    assert site.record.stage == "noticed"


def test_who_died_before_it_told_is_followed_by_one_who_tells() -> None:
    """Nothing rests unannounced: the notice is given, and then the whole grace."""
    site = Site()
    site.pass_(24)

    def dies() -> None:
        raise Unavailable("died")

    site.deps = replace(site.deps, outbox=Slow(site, dies))
    with pytest.raises(Unavailable):
        site.pass_(10)
    site.pass_(60)
    assert site.told == ["reclaim-idle", "reclaim-rested"]
    noticed, rested = (alert.at.timestamp() for alert in site.alerts if alert.kind.startswith("reclaim") and alert.at)
    assert rested - noticed >= RULE.grace
    assert site.world.resting


# What is written to a real cluster.

SPECS: dict[OwnerKind, tuple[str, dict[str, Any], int]] = {
    "Deployment": ("apps/v1", {"replicas": 3}, 3),
    "StatefulSet": ("apps/v1", {"replicas": 2}, 2),
    "Job": ("batch/v1", {"parallelism": 4}, 4),
    "Notebook": ("kubeflow.org/v1", {}, 1),
}
PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "Job": "jobs", "Notebook": "notebooks"}


class Cluster:
    """An API server with one pod behind each kind of owner."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        server.store.serve("notebooks")
        server.store.serve("keda")
        self.api = Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda seconds: None)

    def make(self, kind: str, name: str, maker: tuple[str, str] | None = None, **meta: Any) -> None:
        """An object, made by another."""
        versions = {"Pod": "v1", "ReplicaSet": "apps/v1"} | {k: v for k, (v, *_) in SPECS.items()}
        refs = [{"kind": maker[0], "name": maker[1], "controller": True}] if maker else []
        spec = SPECS[kind][1] if kind in SPECS else {}
        self.server.add(
            {
                "apiVersion": versions[kind],
                "kind": kind,
                "metadata": {"name": name, "namespace": "ml", "ownerReferences": refs, **meta},
                "spec": dict(spec),
            }
        )

    def chain(self, kind: OwnerKind) -> PodOwner:
        """A pod with all that stands behind it."""
        self.make(kind, "ada")
        if kind == "Deployment":
            self.make("ReplicaSet", "ada-rs", ("Deployment", "ada"))
        if kind == "Notebook":
            self.make("StatefulSet", "ada", ("Notebook", "ada"))
        made_by = {"Deployment": ("ReplicaSet", "ada-rs"), "Notebook": ("StatefulSet", "ada")}.get(kind, (kind, "ada"))
        self.make("Pod", "ada-0", made_by, uid="u-1")
        return PodOwner(kind=kind, namespace="ml", name="ada")

    def stored(self, kind: str) -> dict[str, Any]:
        """The owner as the server has it."""
        found: dict[str, Any] = self.server.store.get(PLURALS[kind], "ada", "ml")
        return found


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """The cluster."""
    with api_server() as server:
        yield Cluster(server)


@pytest.mark.parametrize("kind", list(SPECS))
def test_each_kind_rests_and_is_woken_to_the_count_it_had(cluster: Cluster, kind: OwnerKind) -> None:
    """Twice the same is once; no pod is deleted."""
    at, owner = Stage().deps.now(), cluster.chain(kind)
    found = pod_owners.of_pod(cluster.api, "ml", "ada-0", "u-1")
    count = SPECS[kind][2]
    assert found is not None
    assert (found.owner, found.count) == (owner, count)
    for _ in range(2):
        pod_owners.rest(cluster.api, owner, count, at)
    resting = pod_owners.now(cluster.api, owner)
    assert resting is not None
    assert (resting.count, resting.before) == (0, count)
    for _ in range(2):
        assert pod_owners.wake(cluster.api, owner, at) == count
    assert COUNT_BEFORE not in (cluster.stored(kind)["metadata"].get("annotations") or {})
    assert len(cluster.server.lines("PATCH")) == 2
    assert not cluster.server.lines("DELETE")


def test_the_owners_annotations_are_read(cluster: Cluster) -> None:
    """Whether it opted in, and until when it is snoozed."""
    cluster.make("Job", "ada", annotations={RECLAIM: "true", SNOOZE_UNTIL: "2026-11-20T18:00:00Z"})
    found = pod_owners.now(cluster.api, PodOwner(kind="Job", namespace="ml", name="ada"))
    assert found is not None
    assert found.opted
    assert f"{found.snoozed_until:%H:%M}" == "18:00"


@pytest.mark.parametrize(
    "maker", [("Job", "of-a-jobset"), ("PyTorchJob", "train"), ("Job", "of-kueue"), ("Job", "gone"), None]
)
def test_what_another_controller_keeps_is_left_alone(cluster: Cluster, maker: tuple[str, str] | None) -> None:
    """A Job of a JobSet or of Kueue, a kind that is not known, one that is gone, and a pod by itself."""
    cluster.make("Job", "of-a-jobset", ("JobSet", "j"))
    cluster.make("Job", "of-kueue", labels={"kueue.x-k8s.io/queue-name": "q"})
    cluster.make("Pod", "p", maker, uid="u-1")
    assert pod_owners.of_pod(cluster.api, "ml", "p", "u-1") is None


def test_a_count_that_changed_meanwhile_is_left(cluster: Cluster) -> None:
    """Somebody scaled it after it was looked at."""
    owner = cluster.chain("Deployment")
    with pytest.raises(Conflict, match="asks for 3 pods now, not 1"):
        pod_owners.rest(cluster.api, owner, 1, Stage().deps.now())


def test_a_write_that_lost_the_race_is_made_again_over_what_is_there(cluster: Cluster) -> None:
    """The version it read is old: it reads again, and writes once."""
    owner = cluster.chain("Deployment")
    cluster.server.fail(409, on="PATCH")
    pod_owners.rest(cluster.api, owner, 3, Stage().deps.now())
    assert cluster.stored("Deployment")["spec"]["replicas"] == 0


def test_what_we_never_put_to_rest_is_not_woken(cluster: Cluster) -> None:
    """Nobody knows which count it had."""
    cluster.chain("Deployment")
    resource = cluster.server.store.resource("deployments")
    cluster.server.store.patch(resource, ("ml", "ada"), {"spec": {"replicas": 0}})
    with pytest.raises(BadRequest, match="was not put to rest by Pilotlight"):
        pod_owners.wake(cluster.api, PodOwner(kind="Deployment", namespace="ml", name="ada"), Stage().deps.now())


PAUSED = "autoscaling.keda.sh/paused-replicas"


def _scaled(cluster: Cluster, notes: dict[str, str] | None = None, **target: Any) -> None:
    """A ScaledObject behind the owner, and one of another workload."""
    for name, to in (("ada-scaler", {"name": "ada", **target}), ("other", {"name": "other"})):
        cluster.server.add(
            {
                "apiVersion": "keda.sh/v1alpha1",
                "kind": "ScaledObject",
                "metadata": {"name": name, "namespace": "ml", "annotations": dict(notes or {})},
                "spec": {"scaleTargetRef": to, "minReplicaCount": 1},
            }
        )


def _keda(cluster: Cluster, kind: str) -> int:
    """What KEDA's controller does of each ScaledObject in turn, by its documentation; the owner's replicas then."""
    plural, store = PLURALS[kind], cluster.server.store
    for scaled in store.list(store.resource("scaledobjects"), "ml", "", ""):
        if scaled["spec"]["scaleTargetRef"]["name"] != "ada":
            continue
        held = (scaled["metadata"].get("annotations") or {}).get(PAUSED)
        has = cluster.stored(kind)["spec"]["replicas"]
        wanted = int(held) if held is not None else max(has, scaled["spec"]["minReplicaCount"])
        store.patch(store.resource(plural), ("ml", "ada"), {"spec": {"replicas": wanted}})
    found: int = cluster.stored(kind)["spec"]["replicas"]
    return found


def _notes(cluster: Cluster, name: str = "ada-scaler") -> dict[str, str]:
    found: dict[str, str] = cluster.server.store.get("scaledobjects", name, "ml")["metadata"].get("annotations") or {}
    return found


@pytest.mark.parametrize(
    ("kind", "target", "before"),
    [
        pytest.param("Deployment", {}, {}, id="a Deployment, by its name alone"),
        pytest.param("Deployment", {}, {PAUSED: "2"}, id="one that somebody held at two"),
        pytest.param("StatefulSet", {"kind": "StatefulSet", "apiVersion": "apps/v1"}, {}, id="a StatefulSet"),
    ],
)
def test_what_keda_scales_stays_at_rest_and_is_keda_s_again(
    cluster: Cluster, kind: OwnerKind, target: dict[str, str], before: dict[str, str]
) -> None:
    """It is paused at zero meanwhile; waking puts back what was there, and a ScaledObject of others is left alone."""
    owner, at, count = cluster.chain(kind), Stage().deps.now(), SPECS[kind][2]
    _scaled(cluster, before, **target)
    for _ in range(2):
        pod_owners.rest(cluster.api, owner, count, at)
        assert _keda(cluster, kind) == 0
    assert _notes(cluster)[PAUSED] == "0"
    assert _notes(cluster, "other") == before
    assert pod_owners.wake(cluster.api, owner, at) == count
    assert _notes(cluster) == before
    assert pod_owners.wake(cluster.api, owner, at) == count
    assert _keda(cluster, kind) == int(before.get(PAUSED, count))


def test_keda_that_is_faster_than_we_are_loses_no_count(cluster: Cluster) -> None:
    """It scales to zero between the pause and our own write: the count lay on the owner before."""
    owner, at = cluster.chain("Deployment"), Stage().deps.now()
    _scaled(cluster)
    cluster.server.before("GET .*deployments", lambda: _keda(cluster, "Deployment"), times=2)
    pod_owners.rest(cluster.api, owner, 3, at)
    resting = pod_owners.now(cluster.api, owner)
    assert resting is not None
    assert (resting.count, resting.before) == (0, 3)
    assert pod_owners.wake(cluster.api, owner, at) == 3


def test_a_count_that_changed_meanwhile_leaves_keda_as_it_was(cluster: Cluster) -> None:
    """Before the pause it is left, and after it the pause is taken back."""
    owner, at = cluster.chain("Deployment"), Stage().deps.now()
    _scaled(cluster)
    deployments = cluster.server.store.resource("deployments")

    def grown() -> None:
        if PAUSED in _notes(cluster):
            cluster.server.store.patch(deployments, ("ml", "ada"), {"spec": {"replicas": 5}})

    cluster.server.before("GET .*deployments", grown, times=2)
    with pytest.raises(Conflict, match="asks for 5 pods now, not 3"):
        pod_owners.rest(cluster.api, owner, 3, at)
    assert _notes(cluster) == {}


def test_a_pause_that_somebody_changed_after_ours_is_theirs(cluster: Cluster) -> None:
    """Waking leaves their number, and takes out only our mark."""
    owner, at = cluster.chain("Deployment"), Stage().deps.now()
    _scaled(cluster)
    pod_owners.rest(cluster.api, owner, 3, at)
    scaled = cluster.server.store.resource("scaledobjects")
    cluster.server.store.patch(scaled, ("ml", "ada-scaler"), {"metadata": {"annotations": {PAUSED: "4"}}})
    pod_owners.wake(cluster.api, owner, at)
    assert _notes(cluster) == {PAUSED: "4"}


def test_without_the_right_what_keda_may_scale_is_left_and_said(cluster: Cluster) -> None:
    """Where there is KEDA nothing is written; where there is none the right is not needed."""
    owner, at = cluster.chain("Deployment"), Stage().deps.now()
    cluster.server.allow = lambda access: access.group != "keda.sh"
    with pytest.raises(
        Forbidden, match=r"KEDA may scale Deployment ml/ada: pilotlight show infra/kubernetes/rbac/reclaim\.yaml"
    ):
        pod_owners.rest(cluster.api, owner, 3, at)
    assert not cluster.server.lines("PATCH")
    cluster.server.store.resources.pop(("keda.sh/v1alpha1", "scaledobjects"))
    cluster.server.fail(403, on="GET .*scaledobjects", times=2)
    pod_owners.rest(cluster.api, owner, 3, at)
    assert cluster.stored("Deployment")["spec"]["replicas"] == 0
