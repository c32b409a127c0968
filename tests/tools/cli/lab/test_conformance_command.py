"""``pilotlight conformance`` over the stand-ins of AWS, Civo, GKE and Karpenter."""

import hashlib
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aws_server import EKS, Aws
from aws_server import REGION as AWS_REGION
from aws_server import serving as aws_serving
from both_ways import served
from civo_server import CLUSTER, REGION, TOKEN, Civo
from civo_server import serving as civo_serving
from gke_answers import WHERE
from gke_server import Gke
from gke_site import serving as gke_serving
from karpenter_claims import KarpenterWorld, on_claims
from small_cloud import pod, world
from test_standby_world import STOPS
from typer.testing import CliRunner

from pilotlight.errors import BadInput, Failed
from pilotlight.flow.records import brake_records
from pilotlight.settings import deployed_settings
from pilotlight.tools.cli.main import build
from pilotlight.tools.conformance import conformance_run, sandbox
from pilotlight.wiring import app
from pilotlight.world.faults import Faults
from pilotlight.world.simulation import World

POLICY = """
version: 1
pools:
  one: {cloud: CLOUD, cluster_pool: CALLED, instance_type: t4.small, max: 4, mode: act}
  still: {cloud: CLOUD, cluster_pool: four, instance_type: t4.small, mode: advise}
"""
STANDS = "wake_s: 40, standby_usd_per_hour: 0.01,"
CATALOG = """
name: small
as_of: 2026-11-01T00:00:00Z
instance_types:
  t4.small: {cloud: eks, gpu_model: T4, gpus: 1, cpu: "4", memory: 16Gi,
             prices: {on-demand: {usd_per_hour: 2, source: a test, date: 2026-11-01}}}
"""
AT_ONCE = ["--max-usd", "5", "--pool", "one"]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "LOOK_S", 0.01)
    monkeypatch.setattr(sandbox, "PATIENCE_S", 0.3)


@contextmanager
def deployed(cloud: str, home: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Iterator[tuple[World, Any]]:
    """A sandbox at a cloud, and the environment that leads to it."""
    here = world(**options)
    called = {"aws": "one-nodes", "civo": "one-pool-id", "gke": "one-pool"}[cloud]
    (home / "policy.yaml").write_text(
        POLICY.replace("CALLED", called).replace("CLOUD", "eks" if cloud == "aws" else cloud)
    )
    (home / "catalog.yaml").write_text(CATALOG)
    own = {
        "PILOTLIGHT_HOME": str(home),
        "PILOTLIGHT_POLICY": str(home / "policy.yaml"),
        "PILOTLIGHT_CATALOG": str(home / "catalog.yaml"),
    }
    with served(here) as outside:
        if cloud == "aws":
            aws = Aws(here)
            with aws_serving(aws) as environ:
                yield from _set(monkeypatch, {**own, **environ, "PILOTLIGHT_WORLD": outside.url,
                                              "PILOTLIGHT_POOLS": f"asg:{AWS_REGION}/{EKS}"}, here, aws)  # fmt: skip
        elif cloud == "gke":
            gke = Gke(here)
            with gke_serving(gke) as environ:
                yield from _set(monkeypatch, {**own, **environ, "PILOTLIGHT_WORLD": outside.url,
                                              "PILOTLIGHT_POOLS": f"gke:{WHERE}"}, here, gke)  # fmt: skip
        else:
            civo = Civo(here)
            with civo_serving(civo) as url:
                yield from _set(monkeypatch, {**own, "CIVO_API_URL": url, "CIVO_TOKEN": TOKEN,
                                              "PILOTLIGHT_WORLD": outside.url,
                                              "PILOTLIGHT_POOLS": f"civo:{REGION}/{CLUSTER}"}, here, civo)  # fmt: skip


@contextmanager
def claimed(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KarpenterWorld]:
    """A sandbox cluster whose pool is a NodePool of Karpenter's, which buys nothing by itself."""
    with on_claims() as (server, _):
        (home / "policy.yaml").write_text(POLICY.replace("CALLED", "one").replace("CLOUD", "eks"))
        (home / "catalog.yaml").write_text(CATALOG)
        environ = {
            "PILOTLIGHT_HOME": str(home),
            "PILOTLIGHT_POLICY": str(home / "policy.yaml"),
            "PILOTLIGHT_CATALOG": str(home / "catalog.yaml"),
            "PILOTLIGHT_API": "kubeconfig-env:TEST_KUBECONFIG",
            "TEST_KUBECONFIG": server.kubeconfig(),
            "PILOTLIGHT_POOLS": "karpenter",
        }
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        yield server


def _now() -> str:
    """Now, as objects write it: the command's clock is this machine's."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_claims_of_karpenter_keep_every_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One claim for one node, once; doubled it is none more, and its release ends both."""
    with claimed(tmp_path, monkeypatch) as server:
        monkeypatch.setattr(server, "stamp", _now)
        report = json.loads(run("--karpenter", "--for-real", *AT_ONCE, "--json"))
        assert [result["promise"] for result in report["results"] if not result["kept"]] == []
        assert (report["cloud"], len(report["bought"]), report["left"]) == ("karpenter", 1, {})
        assert (server.world.launches, server.world.nodes, server.claims()) == (1, {}, [])


def test_karpenter_is_tried_for_real_only_where_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a word it says what it would do and cost, and nothing is written to the cluster."""
    with claimed(tmp_path, monkeypatch) as server:
        assert "would buy 1 node of one" in run("--karpenter", *AT_ONCE)
        assert (server.world.launches, server.lines("(POST|PATCH|DELETE) .*/nodeclaims")) == (0, [])


def test_a_claim_that_its_provider_keeps_waiting_is_called_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no machine when the run is over: the run fails, and nothing goes on trying."""
    with claimed(tmp_path, monkeypatch) as server:
        server.slow = True
        with pytest.raises(Failed, match="a promise was not kept"):
            run("--karpenter", "--for-real", *AT_ONCE)
        assert (server.world.launches, server.claims()) == (0, [])


def test_what_gke_goes_on_trying_is_called_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stock-out: the run fails, and its group tries no more."""
    with deployed("gke", tmp_path, monkeypatch) as (here, gke):
        here.set_faults(Faults(shortage=1.0))
        with pytest.raises(Failed, match="a promise was not kept"):
            run("--cloud", "gke", "--for-real", *AT_ONCE)
        assert (here.launches, gke.tried, here.fleet.desired["one"]) == (0, {}, 0)


def test_a_shortage_is_a_promise_not_kept_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Karpenter deletes a claim that no machine is left for: the run fails and says so."""
    with claimed(tmp_path, monkeypatch) as server:
        server.world.set_faults(Faults(shortage=1.0))
        with pytest.raises(Failed, match="a promise was not kept"):
            run("--karpenter", "--for-real", *AT_ONCE)
        assert (server.world.launches, server.claims()) == (0, [])


def _set(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], here: World, account: Any
) -> Iterator[tuple[World, Any]]:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    yield here, account


def run(*words: str) -> str:
    """What is printed; what is wrong is raised."""
    all_words = ["conformance", *words]
    done = CliRunner().invoke(build(all_words), all_words)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout


@pytest.mark.parametrize("cloud", ["aws", "civo", "gke"])
def test_every_promise_is_kept_and_everything_given_back(
    cloud: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One node, one call, nothing left; the report says each step and is signed by its own hash."""
    with deployed(cloud, tmp_path, monkeypatch) as (here, account):
        report = json.loads(
            run("--cloud", cloud, "--for-real", *AT_ONCE, "--json", "--out", str(tmp_path / "report.json"))
        )
        assert [result["promise"] for result in report["results"] if not result["kept"]] == []
        assert len(report["results"]) == 8
        assert (here.launches, here.nodes, here.fleet.desired["one"]) == (1, {}, 0)
        assert (len(report["bought"]), report["left"]) == (1, {})
        assert json.loads((tmp_path / "report.json").read_text()) == report
        said = report.pop("sha256")
        assert hashlib.sha256(msgspec.json.encode(report, order="sorted")).hexdigest() == said
        secrets = (TOKEN, "planted")
        assert all(secret not in json.dumps(report) for secret in secrets)
        assert account.calls


def test_gke_is_tried_for_real_only_where_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a word it says what it would do and cost."""
    with deployed("gke", tmp_path, monkeypatch) as (here, gke):
        assert "would buy 1 node of one" in run("--cloud", "gke", *AT_ONCE)
        assert (here.launches, gke.changes()) == (0, [])


SHORT = "  short: {cloud: eks, cluster_pool: eight-nodes, instance_type: eight, max: 4, mode: act}\n"
EIGHT = """  eight: {cloud: eks, gpu_model: A100, gpus: 8, cpu: "96", memory: 1Ti,
          prices: {on-demand: {usd_per_hour: 32, source: a test, date: 2026-11-01}}}
"""
OF_EIGHT = "Running On-Demand E instances"


@pytest.fixture
def quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[World, Aws]]:
    """A sandbox with one more pool, whose type the account's quota is for."""
    with deployed("aws", tmp_path, monkeypatch) as (here, aws):
        (tmp_path / "policy.yaml").write_text((tmp_path / "policy.yaml").read_text() + SHORT)
        (tmp_path / "catalog.yaml").write_text(CATALOG + EIGHT)
        aws.cores = {"eight": 96}
        yield here, aws


ASK = ("--cloud", "aws", "--max-usd", "15", "--pool", "one", "--quota-pool", "short", "--json")


def test_what_the_accounts_quota_refuses_buys_nothing(quota: tuple[World, Aws]) -> None:
    """The quota is read, the call is sent and refused with EC2's own words, and nothing is there then."""
    here, aws = quota
    aws.quotas = {OF_EIGHT: 64}
    report = json.loads(run(*ASK))
    said = {result["promise"]: result for result in report["results"]}
    assert [result["promise"] for result in said.values() if not result["kept"]] == []
    assert "0 of 64 vCPUs run, a node takes 96" in said["the account's quota is read, and leaves no room"]["what"]
    refused = said["a purchase above the account's quota is refused, and buys nothing"]
    assert (refused["calls"], "VcpuLimitExceeded" in refused["what"]) == (["grow short to 1"], True)
    assert (here.launches, here.fleet.desired["eight"], report["left"]) == (1, 0, {})


@pytest.mark.parametrize(
    ("quotas", "why"),
    [({OF_EIGHT: 96}, "a node would be bought"), (None, "may the role call servicequotas:ListServiceQuotas")],
    ids=["that has room", "that may not be read"],
)
def test_a_quota_is_not_tried(quota: tuple[World, Aws], quotas: dict[str, int] | None, why: str) -> None:
    """Nothing is asked for where it would be granted, or where nobody knows."""
    here, aws = quota
    aws.quotas = quotas
    words = ["conformance", *ASK]
    done = CliRunner().invoke(build(words), words)
    assert (why in done.stdout, here.launches, here.nodes) == (True, 0, {})
    assert isinstance(done.exception, Failed)


def test_what_a_quota_ought_to_refuse_is_given_back_where_it_is_granted(quota: tuple[World, Aws]) -> None:
    """A quota that is told wrongly: the run fails, and the node goes."""
    here, aws = quota
    aws.quotas = {OF_EIGHT: 64}
    aws._over_quota = lambda pool, count: None  # type: ignore[method-assign]
    with pytest.raises(Failed, match="a promise was not kept"):
        run(*ASK)
    assert (here.launches, here.nodes, here.fleet.desired["eight"]) == (1, {}, 0)


@pytest.fixture
def standing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[World, Aws]]:
    """A sandbox whose group has a warm pool that takes nodes back; time passes while the command waits."""
    monkeypatch.setattr(sandbox, "PATIENCE_S", 20)
    with deployed("aws", tmp_path, monkeypatch, catalog=STOPS) as (here, aws):
        text = CATALOG.replace("gpu_model: T4,", f"gpu_model: T4, {STANDS}")
        (tmp_path / "catalog.yaml").write_text(text)
        aws.reuse["one"] = {"MaxGroupPreparedCapacity": 0, "MinSize": 0}
        monkeypatch.setattr("time.sleep", lambda _: here.advance(here.now_s + 30))
        yield here, aws


def test_a_node_is_stopped_started_and_given_back(standing: tuple[World, Aws]) -> None:
    """Where nodes can stand by: the named one is stopped, the next purchase starts that one, and nothing is left."""
    here, aws = standing
    report = json.loads(run("--cloud", "aws", *AT_ONCE, "--json"))
    assert [result["promise"] for result in report["results"] if not result["kept"]] == []
    calls = [call for result in report["results"] for call in result["calls"]]
    assert calls == ["grow one to 1", "release n1", "grow one to 1", "stop n2", "grow one to 1", "release n2"]
    assert (here.launches, here.wakes, here.nodes, here.fleet.standing) == (2, 1, {}, {})
    assert (report["bought"], report["left"], aws.refilled) == (["n1", "n2"], {}, 0)


def test_a_stopped_node_is_given_back_too_where_its_start_fails(
    standing: tuple[World, Aws], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands by costs its disk: the sweep finds it though it is no node."""
    here, aws = standing
    honest = aws._launch

    def only_new(pool: str, count: int, zone: str = "") -> list[dict[str, Any]]:
        if here.fleet.standing:
            return [{"ErrorCode": "InsufficientInstanceCapacity", "ErrorMessage": "none left"}]
        return honest(pool, count, zone)

    aws._launch = only_new  # type: ignore[method-assign]
    monkeypatch.setattr(sandbox, "PATIENCE_S", 0.5)
    with pytest.raises(Failed, match="a promise was not kept"):
        run("--cloud", "aws", *AT_ONCE)
    assert (here.nodes, here.fleet.standing) == ({}, {})


def test_a_dry_run_says_what_it_may_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty minutes at $2 an hour; nothing is asked for."""
    with deployed("aws", tmp_path, monkeypatch) as (here, account):
        assert "1 node of one (one/t4.small/on-demand) and give it back: $0.67 at most" in run(
            "--cloud", "aws", *AT_ONCE, "--dry-run"
        )
        assert (here.launches, account.changes()) == (0, [])


def test_a_promise_that_is_broken_is_told_and_the_sweep_gives_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cloud that launches two where one was asked for: the run fails, and both go."""
    with deployed("aws", tmp_path, monkeypatch) as (here, account):
        honest = account._launch
        monkeypatch.setattr(account, "_launch", lambda pool, count, zone="": honest(pool, count + 1, zone))
        with pytest.raises(Failed, match="a promise was not kept"):
            run("--cloud", "aws", *AT_ONCE)
        assert (here.launches, here.nodes, here.fleet.desired["one"]) == (2, {}, 0)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT as in a terminal: whatever runs in the background of a shell begins with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("cloud", ["aws", "civo"])
def test_ctrl_c_gives_back_what_was_bought_before_it_ends_the_command(
    cloud: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The moment a node is bought a person stops it, and again while it cleans up: nothing is left, and no pause."""
    monkeypatch.setattr(sandbox, "PATIENCE_S", 60)
    with deployed(cloud, tmp_path, monkeypatch) as (here, _):
        truly = conformance_run.Run._give_back

        def give_back(self: conformance_run.Run, instance: str, pool: str = "") -> None:
            signal.raise_signal(signal.SIGINT)
            truly(self, instance, pool)

        def bought(self: conformance_run.Run) -> str:
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("it went on")

        monkeypatch.setattr(conformance_run.Run, "_again", bought)
        monkeypatch.setattr(conformance_run.Run, "_give_back", give_back)
        words = ["conformance", "--cloud", cloud, *AT_ONCE]
        assert CliRunner().invoke(build(words), words).exit_code != 0
        assert (here.launches, here.nodes, here.fleet.desired["one"]) == (1, {}, 0)
        assert brake_records.pause_reason(app(deployed_settings()).state, "local", "one") == ""
    assert "stopping: what was bought is given back first" in capfd.readouterr().err


def test_a_size_that_was_raised_and_whose_instance_never_comes_is_named_as_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may come yet, and nobody would give it back: the report and the last lines say what to do."""
    with deployed("aws", tmp_path, monkeypatch) as (here, account):
        account.at_once = False
        monkeypatch.setattr(account, "_launch", lambda *_: [])
        with pytest.raises(Failed, match="a promise was not kept"):
            run("--cloud", "aws", *AT_ONCE, "--out", str(tmp_path / "report.json"))
        report = json.loads((tmp_path / "report.json").read_text())
        assert "lower it by hand" in report["left"]["unknown"]
        assert (here.launches, report["kept"]) == (0, False)


def test_a_report_that_cannot_be_written_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was tried on a cloud that costs money is not lost for want of room; without a folder nothing is bought."""
    with deployed("aws", tmp_path, monkeypatch) as (_, account):
        with pytest.raises(BadInput, match="No such file or directory; name a file that can be written"):
            run("--cloud", "aws", *AT_ONCE, "--out", str(tmp_path / "none" / "report.json"))
        assert account.changes() == []
        words = ["conformance", "--cloud", "aws", *AT_ONCE, "--out", "/dev/full"]
        done = CliRunner().invoke(build(words), words)
        assert isinstance(done.exception, Failed)
        assert "No space left on device; the report is printed above" in str(done.exception)
        assert '"sha256"' in done.stdout


def test_a_pool_that_a_person_paused_is_left_paused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their pause is not ours to take back."""
    with deployed("aws", tmp_path, monkeypatch) as (_, account):
        state = app(deployed_settings()).state
        brake_records.pause(state, "local", "one", "hands off", datetime.now(UTC))
        with pytest.raises(BadInput, match=r"hands off.*: run pilotlight resume first"):
            run("--cloud", "aws", *AT_ONCE)
        assert "hands off" in brake_records.pause_reason(state, "local", "one")
        assert account.changes() == []


REFUSED = {
    "another cloud": (["--cloud", "civo", *AT_ONCE], "name the cloud in both"),
    "too dear": (["--cloud", "aws", "--pool", "one", "--max-usd", "0.5"], "may cost \\$0.67, over --max-usd 0.5"),
    "no such pool": (["--cloud", "aws", "--pool", "nope", "--max-usd", "5"], "no pool 'nope'; it has one, still"),
    "a pool that only advises": (
        ["--cloud", "aws", "--pool", "still", "--max-usd", "5"],
        "the mode of still is advise",
    ),
}


@pytest.mark.parametrize(("words", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_said_before_anything_is_asked(
    words: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, with what to do."""
    with deployed("aws", tmp_path, monkeypatch) as (_, account), pytest.raises(BadInput, match=why):
        run(*words)
    assert account.changes() == []


def test_where_a_pod_waits_nothing_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It might land on the node that is given back."""
    with deployed("aws", tmp_path, monkeypatch) as (here, account):
        here.submit(pod("a"), 60)
        with pytest.raises(BadInput, match="the cluster has 1 waiting GPU pod: use a sandbox"):
            run("--cloud", "aws", *AT_ONCE)
        assert account.changes() == []
