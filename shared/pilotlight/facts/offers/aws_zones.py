"""AWS's less usual names of zones: zone ids as "usw2-az1", local zones as "us-west-2-lax-1a"."""

import re

_ID = re.compile(r"([a-z]{2})(ne|nw|se|sw|n|e|s|w|c)(\d{1,2})-az\d{1,2}")
_SIDES = {
    "ne": "northeast",
    "nw": "northwest",
    "se": "southeast",
    "sw": "southwest",
    "n": "north",
    "e": "east",
    "s": "south",
    "w": "west",
    "c": "central",
}
_LOCAL = re.compile(r"((?:[a-z]+-){2,3}\d{1,2})-[a-z].*")


def region_of_id(zone: str) -> str:
    """The region of a zone id: "usw2-az1" is in us-west-2; empty for what is none."""
    found = _ID.fullmatch(zone)
    return f"{found[1]}-{_SIDES[found[2]]}-{found[3]}" if found else ""


def region_around(place: str) -> str:
    """The region that a local zone's place belongs to: "us-west-2-lax-1" to us-west-2; a region is its own."""
    found = _LOCAL.fullmatch(place)
    return found[1] if found else place


def is_local(place: str) -> bool:
    """True of a local zone's place, where prices are others than its region's."""
    return _LOCAL.fullmatch(place) is not None
