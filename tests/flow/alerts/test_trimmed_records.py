"""A decision whose record holds only a part of its messages, and a worker that dies before it tells them."""

from decimal import Decimal

import msgspec
import pytest
from stage import Stage

from pilotlight.facts.decisions import CallStep, NodeVerdict, Plan, Record
from pilotlight.flow.alerts.decision_messages import close_and_tell
from pilotlight.flow.records import ledger
from pilotlight.ports.state import ABSENT

NODES = 300


def test_what_a_worker_did_not_live_to_tell_is_told_whole_though_its_record_was_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of the nodes that one decision gave back is in the messages that the next worker sends, once."""
    stage = Stage()
    why = "idle for 5 min " * 20
    node = NodeVerdict(node="n", pool="one", instance="i", verdict="release", why=why, usd_per_hour=Decimal(1))
    record = Record(
        id="1",
        cluster="c",
        flow="reconcile",
        trigger="tick",
        at=stage.deps.now(),
        status="open",
        plan=Plan(nodes=tuple(msgspec.structs.replace(node, node=f"n{n}", instance=f"i{n}") for n in range(NODES))),
        steps=tuple(
            CallStep(n=n, call="release", pool="one", target=f"n{n}", instance=f"i{n}", state="done")
            for n in range(NODES)
        ),
    )
    ledger.write(stage.deps.state, record, if_version=ABSENT)

    class Killed(BaseException):
        """The process is gone."""

    def dies(_: object) -> None:
        raise Killed

    ((found, version),) = ledger.open_records(stage.deps.state, "c")
    with monkeypatch.context() as killed:
        killed.setattr(stage.outbox, "publish", dies)
        with pytest.raises(Killed):
            close_and_tell(stage.deps, found, version)
    ((found, version),) = ledger.open_records(stage.deps.state, "c")
    assert found.left_out["messages"]
    close_and_tell(stage.deps, found, version)
    told = [message.id for message in stage.outbox.sent if message.topic == "capacity"]
    assert sorted(told) == sorted({f"1.{n}" for n in range(NODES)})
