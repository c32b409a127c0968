"""All pod shapes that are hard to plan for, which ``bench/scheduler/agreement.py`` tries, by family."""

from agreement_claims import claims
from agreement_found import found
from agreement_mixed import mixed
from agreement_neighbours import affinity, among, spreads
from agreement_objects import Shape
from agreement_order import order, standing
from agreement_room import daemonsets, room
from agreement_volumes import volumes


def every() -> list[Shape]:
    """All shapes."""
    families = (affinity, among, spreads, room, daemonsets, volumes, order, standing, mixed, claims, found)
    return [shape for family in families for shape in family()]
