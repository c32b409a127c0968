"""What a cloud tells of spot's prices by zone is learnt by the billing tick, and kept in the state."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from stage import Stage

from pilotlight.errors import Unavailable
from pilotlight.facts.offers.cloud_shop import SpotPrices, ToldPrices
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.billing.pool_readings import AGAIN_S, ASK_EVERY_S, refresh_prices
from pilotlight.ports.clouds import AskPrices
from pilotlight.state_schema.billing_records import PRICES


class Told(Stage):
    """A cloud that asks ``usd`` for spot of the pool's type in zone a; None does not answer."""

    def __init__(self) -> None:
        super().__init__(pools={"one": PoolPolicy(instance_type="one", capacity_type="spot", zones=("a",))})
        self.usd: str | None = "0.4"
        self.deps = replace(self.deps, live_prices=lambda names: ToldPrices(prices={}), spot_prices=self._tell)

    def _tell(self, names: Sequence[str], since: datetime) -> Mapping[str, SpotPrices]:
        if self.usd is None:
            raise Unavailable("no answer")
        usd = Decimal(self.usd)
        return {f"{name}/a": SpotPrices(now=usd, least=usd, most=usd) for name in names}

    @property
    def usual(self) -> Decimal:
        """What the state knows."""
        kept = PRICES.get(self.deps.state, self.deps.name)
        assert kept is not None
        return kept.value.zones["one/a"].usual


def test_spots_prices_are_learnt_over_days_and_outlive_what_cannot_be_read() -> None:
    """Asked four times a day; the first three days' price counts half three days later; silence changes nothing."""
    stage = Told()
    refresh_prices(stage.deps)
    assert stage.usual == Decimal("0.4")
    stage.usd = "0.8"
    for _ in range(12):
        stage.wait(ASK_EVERY_S + 1)
        refresh_prices(stage.deps)
    assert Decimal("0.59") < stage.usual < Decimal("0.61")
    before, stage.usd = stage.usual, None
    stage.wait(ASK_EVERY_S + 1)
    assert "could not be read" in refresh_prices(stage.deps)[0]
    assert stage.usual == before
    assert refresh_prices(stage.deps) == ()
    stage.usd = "0.8"
    stage.wait(AGAIN_S + 1)
    refresh_prices(stage.deps)
    assert stage.usual > before


def saying(told: ToldPrices) -> AskPrices:
    """A cloud that says so of whatever it is asked."""
    return lambda names: told


def test_where_spot_is_soon_taken_is_kept_until_it_is_asked_for_again() -> None:
    """What a cloud says of a type in a zone goes with its next word."""
    stage = Told()
    for soon in (("one/a",), ()):
        stage.deps = replace(stage.deps, live_prices=saying(ToldPrices(prices={}, soon_taken=soon)))
        stage.wait(ASK_EVERY_S + 1)
        refresh_prices(stage.deps)
        kept = PRICES.get(stage.deps.state, stage.deps.name)
        assert kept is not None
        assert kept.value.soon_taken == soon


def test_prices_of_zones_and_rates_of_loss_that_come_with_prices_are_kept() -> None:
    """A cloud that tells them beside its prices needs no other call; a rate goes with its next word."""
    stage = Told()
    zones = {"one/a": SpotPrices(now=Decimal("0.2"), least=Decimal("0.2"), most=Decimal("0.2"))}
    for taken in ({"one/a": 0.1}, {}):
        told = ToldPrices(prices={}, zones=zones, taken=taken)
        stage.deps = replace(stage.deps, live_prices=saying(told), spot_prices=None)
        stage.wait(ASK_EVERY_S + 1)
        refresh_prices(stage.deps)
        kept = PRICES.get(stage.deps.state, stage.deps.name)
        assert kept is not None
        assert (kept.value.taken, stage.usual) == (taken, Decimal("0.2"))
