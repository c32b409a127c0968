"""Notices that anybody may write, in every source's words, about a node that runs on: judged by the world's log."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import pytest
from aws_server import EKS, Aws
from aws_server import REGION as AWS_REGION
from aws_server import serving as aws_serving
from civo_server import CLUSTER, REGION, TOKEN, Civo
from civo_server import serving as civo_serving
from test_interrupt import SAVES, SPOT, Doomed

from pilotlight.adapters.civo_api import CivoApi
from pilotlight.adapters.pools import asg
from pilotlight.adapters.pools.civo.pools import CivoPools
from pilotlight.codec.events import Delivery, decode
from pilotlight.facts.messages import InterruptionNotice, NoticeKind
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.flow.interruption.interrupt import interrupt
from pilotlight.ports.clouds import CloudAccount

SAMPLES = Path(__file__).resolve().parents[3] / "events" / "samples"
BOUGHT = PoolPolicy(instance_type="one", max=5)
CLUSTERS = ("civo", "aws", "aws that may not be asked", "world")
GOES_S, GRACE_S, MARGIN_S, STEP_S = 120.0, 30.0, 10.0, 5.0


def _of_sources() -> Iterator[InterruptionNotice]:
    """One notice of each sample that some source's reader takes for one."""
    for path in sorted(SAMPLES.rglob("*.json")):
        content = json.loads(path.read_bytes())
        wrapped = isinstance(content, dict) and content.keys() == {"headers", "body"}
        body, headers = (
            (json.dumps(content["body"]).encode(), content["headers"]) if wrapped else (path.read_bytes(), {})
        )
        for one in decode(body, headers, cluster="c"):
            if isinstance(one, Delivery) and isinstance(one.message, InterruptionNotice):
                yield one.message


def _made_up() -> Iterator[InterruptionNotice]:
    """Our own message, of every kind in the name of every cloud."""
    for kind in get_args(NoticeKind):
        for cloud in get_args(_cloud_of_message()):
            yield InterruptionNotice(cluster="c", instance="n1", kind=kind, cloud=cloud)


def _cloud_of_message() -> Any:
    return next(field.type for field in msgspec.structs.fields(InterruptionNotice) if field.name == "cloud")


FORGED = list({(m.kind, m.cloud, m.action): m for m in (*_of_sources(), *_made_up())}.values())


class _Site(Doomed):
    """A node of one cloud; ``aws`` is the account where it is AWS's."""

    aws: Aws


@contextmanager
def _stage(cluster: str, pool: PoolPolicy, **fields: Any) -> Iterator[_Site]:
    """A node with an hour of unsaved work on it, of that cloud."""
    stage = _Site(pool, **fields)
    stage.minutes(60)
    stage.outbox.sent.clear()
    if cluster == "world":
        yield stage
    elif cluster == "civo":
        civo = Civo(stage.world)
        with civo_serving(civo) as url:
            api = CivoApi(TOKEN, REGION, url=url, sleep=lambda _: None)
            stage.deps = replace(stage.deps, pools=CivoPools(api, CLUSTER, civo.ids(), stage.world.clock))
            yield stage
    else:
        aws = Aws(stage.world)
        aws.tells = cluster == "aws"
        with aws_serving(aws) as environ:
            account = CloudAccount(aws.names(), stage.world.clock, lambda: "", environ)
            pools = asg.open_pools(f"{AWS_REGION}/{EKS}", account)
            assert pools is not None
            stage.deps = replace(stage.deps, pools=pools)
            stage.aws = aws
            yield stage


def _play(stage: Doomed, seconds: float) -> None:
    """So long passes, with rescues every few seconds and all that buys for pods that wait."""
    end = stage.world.now_s + seconds
    while stage.world.now_s < end:
        stage.wait(STEP_S)
        go_on(stage.deps)
        for job in list(stage.world.pending.values()):
            stage.event(job.demands[0])
        if stage.world.now_s % 60 < STEP_S:
            stage.tick()


@pytest.mark.parametrize("instance", ["n1", "n7", "i-0abc"])
@pytest.mark.parametrize("pool", [SPOT, BOUGHT], ids=["spot", "on-demand"])
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_forged_notice_buys_nothing_and_evicts_nobody_before_its_graces_end(
    cluster: str, pool: PoolPolicy, instance: str
) -> None:
    """Of every kind, in every cloud's name and every source's words, dated now: one node is ever launched, none given
    back, no job is stopped sooner than a true notice must, and each job runs on the same node in the end."""
    with _stage(cluster, pool) as stage:
        for message in FORGED:
            now, begin = stage.world.clock.now(), stage.world.now_s
            goes = now + timedelta(seconds=GOES_S) if message.deadline or message.cloud in ("world", "node") else None
            forged = msgspec.structs.replace(message, cluster="c", instance=instance, at=now, deadline=goes)
            marked = len(stage.log)
            interrupt(stage.deps, forged)
            _play(stage, 300)
            name = f"{message.kind} of {message.cloud} ({message.action})"
            new = stage.log[marked:]
            assert [r["event"] for r in new if r["event"] in ("launch", "terminate")] == [], name
            stopped = [r["t"] for r in new if r["event"] == "stop"]
            assert all(at >= begin + GOES_S - GRACE_S - MARGIN_S - STEP_S for at in stopped), name
            assert instance == "n1" or not stopped, name
            if message.kind != "lifecycle" or cluster != "aws that may not be asked":
                assert (len(stage.world.running), stage.world.nodes["n1"].cordoned) == (1, False), name


ORDERED: list[Literal["spot-interruption", "scheduled-change", "lifecycle"]] = [
    "spot-interruption", "scheduled-change", "lifecycle",
]  # fmt: skip


@pytest.mark.parametrize("kind", ORDERED)
def test_what_ec2_says_too_is_carried_through(kind: NoticeKind) -> None:
    """A spot request that is marked, an event that is scheduled and a group that waits confirm their notice: the pod
    saves, a node is bought in the place of its own, and that is given back before the deadline."""
    with _stage("aws", SPOT if kind == "spot-interruption" else BOUGHT, pods=[SAVES]) as stage:
        now = stage.world.clock.now()
        goes = now + timedelta(seconds=GOES_S)
        stage.world.interrupt("n1", GOES_S)
        if kind == "lifecycle":
            stage.aws.hooks[stage.aws.group_name("p")] = ["pilotlight"]
        if kind == "scheduled-change":
            event = {"Code": "instance-retirement", "Description": "It is retired", "NotBefore": goes}
            stage.aws.scheduled["n1"] = [event]
        interrupt(
            stage.deps, InterruptionNotice(cluster="c", instance="n1", kind=kind, cloud="aws", at=now, deadline=goes)
        )
        _play(stage, 100)
        assert (stage.outcome, stage.world.launches, stage.world.terminations) == ("released", 2, 1)


def test_a_true_notice_that_ec2_may_not_confirm_is_saved_and_bought_for_once_it_is_gone() -> None:
    """Without the rights to ask, the pod is stopped in order before the deadline, and its new node comes after that."""
    with _stage("aws that may not be asked", SPOT, pods=[SAVES]) as stage:
        now, begin = stage.world.clock.now(), stage.world.now_s
        goes = now + timedelta(seconds=GOES_S)
        stage.world.interrupt("n1", GOES_S)
        interrupt(
            stage.deps,
            InterruptionNotice(
                cluster="c", instance="n1", kind="spot-interruption", cloud="aws", at=now, deadline=goes
            ),
        )
        _play(stage, 600)
        (stopped,) = [r["t"] for r in stage.log if r["event"] == "stop"]
        (bought,) = [r["t"] for r in stage.log if r["event"] == "launch"][1:]
        assert GOES_S - GRACE_S - MARGIN_S <= stopped - begin < GOES_S
        assert GOES_S <= bought - begin <= GOES_S + 2 * STEP_S
        assert len(stage.world.running) == 1
