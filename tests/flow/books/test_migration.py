"""State that was written before accounts moved one way: it is read, and every hold in it is settled to the cent."""

from datetime import timedelta
from decimal import Decimal

import msgspec
from stage import START, Stage

from pilotlight.facts.policy import Budget, ClassPolicy
from pilotlight.state_schema.books import CAP, HOLD
from pilotlight.units import HOUR

TERMS = (
    '{"pool":"one","team":"ml","workload_class":"batch","usd_per_hour":"1","gpus":1,"boot_s":180.0,"idle_s":300.0,'
    '"run_s":7200.0,"run_source":"classes.batch.max_runtime","typical_s":3600.0,"minimum_s":0.0,"increment_s":1.0}'
)
EXPORT = {
    "cap/c/all/usd/20261120T0000": '{"schema":1,"settled":"0.5","held":{"d.0.0":"2.1333","d.0.1":"0.75","d.0.2":"2"}}',
    "hold/c/d.0.0": '{"schema":1,"id":"d.0.0","decision":"d","terms":' + TERMS + ',"since":"2026-11-20T11:00:00Z",'
    '"binds_until":"2026-11-20T12:08:00Z","instance":"n1","ended_at":null,"frozen":false}',
    "hold/c/d.0.1": '{"schema":1,"id":"d.0.1","decision":"d","terms":' + TERMS + ',"since":"2026-11-20T11:00:00Z",'
    '"binds_until":"2026-11-20T12:08:00Z","instance":"n2","ended_at":"2026-11-20T11:45:00Z","frozen":false}',
    "hold/c/d.0.2": '{"schema":1,"id":"d.0.2","decision":"d","terms":' + TERMS + ',"since":"2026-11-20T11:58:00Z",'
    '"binds_until":"2026-11-20T12:06:00Z","instance":"","ended_at":null,"frozen":false}',
}
"""As ``pilotlight state export`` wrote it then: a node that is gone since, one half settled, one never bought."""


def test_state_of_before_is_settled_to_the_cent() -> None:
    """What was settled stays; the node that is gone and the one half settled cost what they lived."""
    rules = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=2 * HOUR)
    on = Stage(budgets=(Budget(name="all", usd=Decimal(10), period="day"),), classes={"batch": rules})
    for key, record in EXPORT.items():
        on.deps.state.put(key, record.encode())
    on.tick()
    (account,) = CAP.scan(on.deps.state)
    assert (account.value.settled, account.value.held, account.value.done) == (
        Decimal("0.5") + Decimal(1) + Decimal("0.75"),
        {},
        {},
    )
    assert list(HOLD.scan(on.deps.state)) == []


def test_a_hold_of_before_says_until_when_it_held() -> None:
    """It held its node's longest run, from the last moment at which a pod might bind."""
    hold = HOLD.format.read("hold/c/d.0.0", EXPORT["hold/c/d.0.0"].encode())
    assert hold.until == START + timedelta(minutes=8, hours=2)
    assert HOLD.format.read("hold/c/d.0.0", HOLD.format.write(hold)) == hold
    assert msgspec.json.decode(HOLD.format.write(hold))["schema"] == 2
