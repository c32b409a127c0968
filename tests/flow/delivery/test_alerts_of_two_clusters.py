"""Alerts of two clusters that one deployment serves."""

from msgspec.structs import replace
from telling_stage import Wall, alert, desk_of

from pilotlight.flow.answer import by_fingerprint
from pilotlight.flow.delivery.fan_out import fan_out
from pilotlight.world.world_clock import VirtualClock


def test_the_same_of_two_clusters_is_told_of_both(clock: VirtualClock) -> None:
    """What one cluster was told of, nobody was told of another."""
    wall = Wall()
    desk = desk_of(clock, {"wall": wall}, group_after=0)
    one = alert()
    for each in (one, replace(one, cluster="d"), one):
        fan_out(desk, each)
    assert [told.cluster for told in wall.told] == ["c", "d"]


def test_an_alert_told_once_in_so_long_has_its_clusters_own_id() -> None:
    """The same trouble at the same time in two clusters is two messages: neither hides the other."""
    one = alert()
    assert by_fingerprint(one).id != by_fingerprint(replace(one, cluster="d")).id
