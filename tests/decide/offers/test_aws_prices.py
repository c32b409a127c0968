"""The dated price files of AWS by region: each price with its source and day, and no machine at $0."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from pilotlight.adapters.prices.price_files import FilePrices
from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.policy_file import read_policy
from pilotlight.decide.offers.live_prices import with_told
from pilotlight.decide.offers.offerings import offerings, too_old
from pilotlight.errors import BadInput
from pilotlight.facts.offers.catalog import Catalog, LivePrices, Price

FOLDER = Path(__file__).resolve().parents[3] / "data" / "catalogs"
FILE = FOLDER / "aws-us-east-1.yaml"
CATALOG = read_catalog(FILE.read_bytes(), FILE.name)
REGIONS = sorted(path.stem.removeprefix("aws-") for path in FOLDER.glob("aws-*.yaml"))
TODAY = datetime(2026, 11, 23, tzinfo=UTC)
FAMILIES = {"g4dn", "g5", "g6", "g6e", "p3", "p4d", "p4de", "p5", "p5e", "p5en"}
POLICY = b"""
version: 1
pools:
  block: {cloud: eks, instance_type: p5e.48xlarge, capacity_type: reserved}
  dear: {cloud: eks, instance_type: p5e.48xlarge}
"""


def of(region: str) -> Catalog:
    """A region's file."""
    path = FOLDER / f"aws-{region}.yaml"
    return read_catalog(path.read_bytes(), path.name)


def together(*regions: str) -> Catalog:
    """The files of some regions as a policy's prices.files name them."""
    return FilePrices(
        [str(FOLDER / f"aws-{region}.yaml") for region in regions], lambda path: Path(path).read_bytes()
    ).catalog()


def test_the_common_shapes_are_there() -> None:
    """Each family of GPU machines, on demand and some on spot; other regions have fewer."""
    assert {name.partition(".")[0] for name in CATALOG.instance_types} == FAMILIES
    assert {"us-east-1", "us-east-2", "us-west-2", "eu-west-1"} <= set(REGIONS)


@pytest.mark.parametrize("region", REGIONS)
def test_each_figure_has_its_source_and_day(region: str) -> None:
    """A file is of the region that its name says, and has both ways to buy; each price says where it is from."""
    catalog = of(region)
    assert (catalog.name, catalog.region) == (f"aws-{region}", region)
    sold = [kind.prices for kind in catalog.instance_types.values()]
    assert {way for prices in sold for way in prices} == {"on-demand", "spot"}
    figures = [(p.usd_per_hour, p.source, p.date) for prices in sold for p in prices.values()]
    figures += [(disk.usd_per_gib_month, disk.source, disk.date) for disk in catalog.disks.values()]
    assert all(usd > 0 and len(source) > 10 and date.fromisoformat(day) < TODAY.date() for usd, source, day in figures)
    both = [prices for prices in sold if len(prices) == 2]
    assert both
    assert all(prices["spot"].usd_per_hour < prices["on-demand"].usd_per_hour for prices in both)


@pytest.mark.parametrize("region", REGIONS)
def test_a_machine_is_the_same_in_every_region(region: str) -> None:
    """Only prices differ."""
    for name, kind in of(region).instance_types.items():
        assert replace(kind, prices={}) == replace(CATALOG.instance_types[name], prices={})


@pytest.mark.parametrize("region", REGIONS)
def test_spot_of_a_file_is_planned_with_and_not_bought_at_when_it_is_old(region: str) -> None:
    """Its day counts as that of a price on demand does: at three times max_age_days it is the last."""
    kinds = {name: kind for name, kind in of(region).instance_types.items() if "spot" in kind.prices}
    pools = "".join(
        f"\n  p{n}: {{cloud: eks, instance_type: {name}, capacity_type: spot}}" for n, name in enumerate(kinds)
    )
    policy = read_policy(f"version: 1\npools:{pools}\n".encode(), "policy")
    found, findings = offerings(policy, of(region).resolve(), region)
    assert ([one.instance_type for one in found], findings) == (list(kinds), ())
    for one in found:
        day = datetime.fromisoformat(kinds[one.instance_type].prices["spot"].date).replace(tzinfo=UTC)
        last = day + timedelta(days=3 * policy.prices.max_age_days)
        assert (one.priced_at, too_old(policy, one, last), too_old(policy, one, last + timedelta(days=1))) == (
            day,
            False,
            True,
        )
        assert too_old(policy, one, TODAY)


def test_a_type_that_is_only_reserved_has_a_pool_of_that_and_no_price_on_demand() -> None:
    """Capacity Blocks of it cost nothing more; on demand it is an error that names it."""
    found, findings = offerings(read_policy(POLICY, "policy"), CATALOG)
    assert [(one.pool, one.usd_per_hour) for one in found] == [("block", Decimal(0))]
    assert ["p5e.48xlarge/on-demand" in one.message for one in findings] == [True]


ELSEWHERE = b"""
version: 1
pools:
  far: {cloud: eks, instance_type: g5.xlarge, zones: [eu-west-1a]}
  near: {cloud: eks, instance_type: g5.xlarge, zones: [us-east-1b]}
  unsaid: {cloud: eks, instance_type: g5.xlarge}
  own: {cloud: eks, instance_type: g6.xlarge, zones: [eu-west-1a]}
prices: {overrides: {g6.xlarge/on-demand: 0.9}}
"""


def test_another_regions_price_is_no_price() -> None:
    """A pool that is elsewhere by its zones, or by the deployment's region, has an error with its type and region."""
    policy = read_policy(ELSEWHERE, "policy")
    found, findings = offerings(policy, CATALOG.resolve(), "eu-central-1")
    assert [(one.pool, one.usd_per_hour) for one in found] == [("near", Decimal("1.006")), ("own", Decimal("0.9"))]
    said = {each.subject: each.message for each in findings}
    assert "no price for g5.xlarge/on-demand in eu-west-1 (the price file is of us-east-1)" in said["pool far"]
    assert "no price for g5.xlarge/on-demand in eu-central-1 (the price file is of us-east-1)" in said["pool unsaid"]


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        ("instance_type: g5.xlarge", "no price for g5.xlarge/on-demand in us-west-2 (the price file is of us-east-1)"),
        ("instance_type: p4d.24xlarge", "no price for p4d.24xlarge/on-demand in us-west-2: name a file of"),
        ("instance_type: p6.48xlarge", "p6.48xlarge is not in catalogue"),
        ("instance_type: p5en.48xlarge, zones: [ap-south-1a]", "no price for p5en.48xlarge/on-demand in ap-south-1"),
    ],
    ids=["a type without a figure there", "sold in another way", "an unknown type", "an unknown region"],
)
def test_what_no_file_knows_is_an_error_that_names_it(pool: str, said: str) -> None:
    """Type and region, and never $0."""
    policy = read_policy(f"version: 1\npools: {{one: {{cloud: eks, {pool}}}}}\n".encode(), "policy")
    found, (finding,) = offerings(policy, together("us-east-1", "us-west-2"), "us-west-2")
    assert (found, said in finding.message) == ((), True)


BOTH = b"""
version: 1
pools:
  east: {cloud: eks, instance_type: p5en.48xlarge, capacity_type: spot, zones: [us-east-1a]}
  west: {cloud: eks, instance_type: p5en.48xlarge, capacity_type: spot, zones: [us-west-2a]}
  unsaid: {cloud: eks, instance_type: p5en.48xlarge, capacity_type: spot}
"""


@pytest.mark.parametrize(
    "files", [("us-east-1", "us-west-2"), ("us-west-2", "us-east-1")], ids=["east first", "west first"]
)
def test_files_of_two_regions_stand_side_by_side(files: tuple[str, ...]) -> None:
    """Each pool has its own region's price, whichever file is named last; a pool without zones the deployment's."""
    found, findings = offerings(read_policy(BOTH, "policy"), together(*files), "us-west-2")
    prices = {one.pool: str(one.usd_per_hour) for one in found}
    assert (prices, findings) == ({"east": "27.1988", "west": "26.9369", "unsaid": "26.9369"}, ())


@pytest.mark.parametrize("region", ["us-west-2", "us-east-1", "eu-north-1"])
def test_what_the_cloud_tells_holds_in_its_region_alone(region: str) -> None:
    """Beside it a pool of another region keeps its own file's price."""
    told = LivePrices(
        at=TODAY, prices={"p5en.48xlarge": {"spot": Price(usd_per_hour=Decimal(30), source="EC2", date="2026-11-23")}}
    )
    catalog = with_told(together("us-east-1", "us-west-2"), told, region)
    prices = {one.pool: str(one.usd_per_hour) for one in offerings(read_policy(BOTH, "policy"), catalog, region)[0]}
    files = {"east": "27.1988", "west": "26.9369"}
    own = {"us-east-1": "east", "us-west-2": "west"}.get(region, "unsaid")
    assert prices == files | {"unsaid": "30", own: "30"}


def test_a_later_file_of_the_same_region_or_of_none_replaces_what_was_there() -> None:
    """As a price file of one's own does that is named last."""
    both = together("us-east-1", "us-west-2")
    kind = CATALOG.instance_types["p5en.48xlarge"]
    dear = {"spot": Price(usd_per_hour=Decimal(40), source="ours", date="2026-11-01")}
    for region, expected in (("us-west-2", ["27.1988", "40", "40"]), ("", ["40", "40", "40"])):
        own = Catalog(
            name="own", as_of=TODAY, instance_types={"p5en.48xlarge": replace(kind, prices=dear, region=region)}
        )
        found, _ = offerings(read_policy(BOTH, "policy"), both.followed_by(own), "us-west-2")
        assert [str(one.usd_per_hour) for one in found] == expected


NOWHERE = b"""
version: 1
pools:
  unsaid: {cloud: eks, instance_type: p5en.48xlarge, capacity_type: spot}
  odd: {cloud: eks, instance_type: p5en.48xlarge, capacity_type: spot, zones: [upstairs]}
  own: {cloud: eks, instance_type: p3.2xlarge, capacity_type: spot}
prices: {overrides: {p3.2xlarge/spot: 1.25}}
"""


@pytest.mark.parametrize(
    "files", [("us-east-1", "us-west-2"), ("us-west-2", "us-east-1")], ids=["east first", "west first"]
)
def test_a_pool_of_unknown_region_takes_no_files_price_by_chance(files: tuple[str, ...]) -> None:
    """Where files of two regions differ it has none, and the error says what to write; an override holds anywhere."""
    found, findings = offerings(read_policy(NOWHERE, "policy"), together(*files))
    assert [(one.pool, one.usd_per_hour) for one in found] == [("own", Decimal("1.25"))]
    assert [(each.subject, each.code) for each in findings] == [
        ("pool unsaid", "unknown-price"),
        ("pool odd", "unknown-price"),
    ]
    assert "region unknown: write its zones, or set PILOTLIGHT_POOLS" in findings[0].message
    assert "zone upstairs names none" in findings[1].message


TWO_WAYS = b"""
version: 1
pools:
  od: {instance_type: p5en.48xlarge}
  spot: {instance_type: p5en.48xlarge, capacity_type: spot}
"""


def test_where_all_regions_agree_none_need_be_known() -> None:
    """A price that every file has is the pool's; one that only some have, or at another figure, is not."""
    both = together("us-east-1", "us-west-2")
    kind = both.instance_types["p5en.48xlarge"]
    same = {**kind.prices, "on-demand": Price(usd_per_hour=Decimal(60), source="ours", date="2026-11-01")}
    east = replace(
        both.elsewhere["us-east-1"]["p5en.48xlarge"],
        prices=same | {"spot": replace(same["spot"], usd_per_hour=Decimal(9))},
    )
    agreed = replace(
        both,
        instance_types={"p5en.48xlarge": replace(kind, prices=same)},
        elsewhere={"us-east-1": {"p5en.48xlarge": east}},
    )
    found, findings = offerings(read_policy(TWO_WAYS, "policy"), agreed)
    assert [(one.pool, one.usd_per_hour) for one in found] == [("od", Decimal(60))]
    assert [each.subject for each in findings] == ["pool spot"]


def test_one_regions_file_is_that_of_pools_that_say_none() -> None:
    """There is no other that could be meant."""
    found, findings = offerings(read_policy(BOTH, "policy"), CATALOG.resolve())
    assert {one.pool: str(one.usd_per_hour) for one in found} == {"east": "27.1988", "unsaid": "27.1988"}
    assert [each.subject for each in findings] == ["pool west"]


ZONES = {
    "a zone id": ("usw2-az1", "us-west-2", "26.9369"),
    "the id of a zone of another region": ("use1-az6", "us-east-1", "27.1988"),
    "an id in a compass corner": ("apse2-az3", "ap-southeast-2", ""),
    "an id in the middle": ("euc1-az2", "eu-central-1", ""),
    "a zone of the government's": ("us-gov-west-1a", "us-gov-west-1", ""),
    "a local zone, which has prices of its own": ("us-west-2-lax-1a", "us-west-2", ""),
}


@pytest.mark.parametrize(("zone", "region", "usd"), ZONES.values(), ids=ZONES.keys())
def test_a_zone_says_its_region(zone: str, region: str, usd: str) -> None:
    """By its name or its id: nodes' label is told from it, and the price that holds there, or none."""
    text = f"version: 1\npools: {{p: {{cloud: eks, instance_type: p5en.48xlarge, capacity_type: spot, zones: [{zone}]"
    both = together("us-east-1", "us-west-2")
    found, findings = offerings(read_policy(f"{text}}}}}\n".encode(), "policy"), both, "us-east-1")
    assert [str(one.usd_per_hour) for one in found] == ([usd] if usd else [])
    assert all(f"in {region}" in each.message for each in findings)
    own = read_policy(f"{text}}}}}\nprices: {{overrides: {{p5en.48xlarge/spot: 2}}}}\n".encode(), "policy")
    assert [one.labels["topology.kubernetes.io/region"] for one in offerings(own, both)[0]] == [region]


def test_the_usual_remedy_is_named_with_its_region() -> None:
    """The command that writes a file of the type's prices."""
    policy = read_policy(ELSEWHERE, "policy")
    _, (far, _) = offerings(policy, CATALOG.resolve(), "eu-central-1")
    assert "pilotlight sizes g5.xlarge --region eu-west-1 --catalog" in far.message
    assert 'prices.overrides["g5.xlarge/on-demand"]' in far.message


def test_a_file_cannot_say_what_is_elsewhere() -> None:
    """Other regions have files of their own."""
    text = FILE.read_text(encoding="utf-8") + "elsewhere: {us-west-2: {}}\n"
    with pytest.raises(BadInput, match="unknown key elsewhere"):
        read_catalog(text, "own")


def test_what_a_type_costs_while_it_stands_by_is_its_disks() -> None:
    """100 GiB of gp3 by the month of 720 hours that AWS bills disks by, rounded up; one's own figure stays."""
    text = FILE.read_text(encoding="utf-8")
    types = text.index("  g5.xlarge:")
    own = text[:types] + text[types:].replace("cloud: eks", "cloud: eks\n    disk_gib: 100\n    wake_s: 60", 1)
    kind = read_catalog(own, "own").resolve().instance_types["g5.xlarge"]
    assert kind.standby_usd_per_hour == Decimal("0.011112")
    hand = own.replace("disk_gib: 100", "disk_gib: 100\n    standby_usd_per_hour: 0.02")
    assert read_catalog(hand, "own").resolve().instance_types["g5.xlarge"].standby_usd_per_hour == Decimal("0.02")


def test_a_disk_without_a_price_is_an_error() -> None:
    """It names the kind, and what to write."""
    text = FILE.read_text(encoding="utf-8").replace("cloud: eks", "cloud: eks\n    disk: io2\n    disk_gib: 100", 1)
    with pytest.raises(BadInput, match=r"g4dn.xlarge.disk: no price of io2 under disks; write disks.io2"):
        read_catalog(text, "own")
