"""MIG's geometry, and how pods share: slices where they fit, MPS where it is calm, time-slicing never for serving."""

from decimal import Decimal
from itertools import combinations_with_replacement, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.decide.utilisation.gpu_waste import Waste, waste
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.tools.advice.mig_profiles import MODELS, ROOM, Model, lie, model_of, smallest
from pilotlight.tools.advice.ways_to_share import CALM, MEMORY, advise, saving_ways

GIB = 1024
DEVICE = 80.0 * GIB
A100 = MODELS["A100-80GB"]


@pytest.mark.parametrize(
    ("gib", "activity", "profile"),
    [
        pytest.param(25, 0.1, "3g.40gb", id="25 GB"),
        pytest.param(26, 0.2, "3g.40gb", id="a model of 13 billion"),
        pytest.param(14, 0.2, "2g.20gb", id="a model of 7 billion that works"),
        pytest.param(14, 0.1, "1g.20gb", id="a model of 7 billion that hardly works"),
        pytest.param(2, 0.1, "1g.10gb", id="BERT"),
        pytest.param(2, 0.9, "7g.80gb", id="little memory and all of the work"),
    ],
)
def test_the_least_profile_has_room_for_memory_and_work(gib: float, activity: float, profile: str) -> None:
    """The article's table: a fifth more than the most that was seen, and as much of the device's work."""
    found = smallest(A100, gib * GIB, activity)
    assert found is not None
    assert found.name == profile


def test_what_no_slice_holds_has_none() -> None:
    """More than the device with its room."""
    assert smallest(A100, 70 * GIB, 0.1) is None


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_as_many_of_a_profile_lie_on_a_device_as_nvidia_says(model: Model) -> None:
    """And no more."""
    for profile in model.profiles:
        assert lie(model, [profile] * profile.most) is not None
        assert lie(model, [profile] * (profile.most + 1)) is None


MIXES = {
    ("3g.40gb", "3g.40gb"): True,
    ("4g.40gb", "3g.40gb"): True,
    ("4g.40gb", "2g.20gb", "1g.10gb"): True,
    ("3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"): True,
    ("4g.40gb", "4g.40gb"): False,
    ("3g.40gb", "3g.40gb", "1g.10gb"): False,
    ("7g.80gb", "1g.10gb"): False,
}


@pytest.mark.parametrize(("names", "fits"), MIXES.items(), ids=map(" ".join, MIXES))
def test_mixes_lie_as_the_guide_draws_them(names: tuple[str, ...], fits: bool) -> None:
    """By memory and by where each may begin."""
    by_name = {profile.name: profile for profile in A100.profiles}
    assert (lie(A100, [by_name[name] for name in names]) is not None) == fits


def test_no_layout_overlaps() -> None:
    """Whatever lies on a device has its own slices, at places that its profile allows."""
    for count in (2, 3, 4):
        for wanted in combinations_with_replacement(A100.profiles, count):
            starts = lie(A100, wanted)
            if starts is None:
                continue
            spans = sorted((start, start + p.memory) for start, p in zip(starts, wanted, strict=True))
            assert all(a[1] <= b[0] for a, b in pairwise(spans))
            assert all(start in p.starts for start, p in zip(starts, wanted, strict=True))


def row(*pods: tuple[float, float], names: str = "abcdefghi") -> Waste:
    """An owner whose pods, each made by itself, took so many GiB and did so much, all day."""
    series = tuple(
        GpuSeries(pod=f"web/{names[n]}", device=f"GPU-{n}", activity=[activity] * 150, memory=[gib * GIB] * 150)
        for n, (gib, activity) in enumerate(pods)
    )
    (found,) = waste(Telemetry(start_s=0, step_s=600, series=series), Decimal(1), 0, lambda _: "web/chat")
    return found


WAYS = {
    "slices where the model has them": (((25, 0.2),) * 4, A100, True, "mig", 2),
    "a pod that needs a whole device keeps one": (((70, 0.2), (5, 0.1), (5, 0.1)), A100, True, "mig", 2),
    "no slices: serving that is calm by MPS": (((25, 0.1),) * 4, None, True, "mps", 2),
    "no slices: serving that is busy not at all": (((10, 0.4),) * 4, None, True, "none", 4),
    "no slices: a batch by MPS, as far as its work fits": (((10, 0.4),) * 4, None, False, "mps", 2),
    "no slices: a batch that works all the time saves nothing": (((1, 1.0),) * 7, None, False, "none", 7),
    "too large for any": (((60, 0.1),) * 3, A100, True, "none", 3),
}


@pytest.mark.parametrize(("pods", "model", "serving", "kind", "devices"), WAYS.values(), ids=WAYS)
def test_the_safest_way_that_saves_a_device(
    pods: tuple[tuple[float, float], ...], model: Model | None, serving: bool, kind: str, devices: int
) -> None:
    """Slices before MPS, and nothing where nothing is saved."""
    found = advise(row(*pods), model, DEVICE, serving=serving)
    assert (found.kind, found.devices) == (kind, devices)


def test_serving_is_never_time_sliced() -> None:
    """Not even where it is asked for."""
    assert advise(row((1, 0.06), (1, 0.06)), None, DEVICE, serving=True, only="time-slicing").kind == "none"
    assert advise(row((1, 0.06), (1, 0.06)), None, DEVICE, serving=False, only="time-slicing").kind == "time-slicing"


PODS = st.lists(st.tuples(st.floats(0.5, 79), st.floats(0.06, 1)), min_size=2, max_size=9)


@given(PODS, st.booleans(), st.sampled_from([None, A100]))
def test_advice_never_overfills_a_device(pods: list[tuple[float, float]], serving: bool, model: Model | None) -> None:
    """Every slice has room for its pod; of equal shares any pods may meet on a device."""
    found = advise(row(*pods), model, DEVICE, serving=serving)
    assert found.devices <= found.pods == len(pods)
    if found.kind == "mig":
        mib = {f"nvidia.com/mig-{p.name}": p.mib for p in A100.profiles}
        assert all(ROOM * one.peak_mib <= mib[asked] for one, asked in found.resources)
        assert sum(len(profiles) * count for profiles, count in found.layouts) == len(found.resources)
    elif found.kind != "none":
        largest = sorted((one.peak_mib for one, _ in found.resources), reverse=True)
        assert sum(largest[: found.replicas]) <= MEMORY * DEVICE + 1e-6
        busiest = sorted((one.activity for one, _ in found.resources), reverse=True)
        assert sum(busiest[: found.replicas]) <= (CALM if serving else 1) + 1e-6


def test_pods_of_one_object_ask_alike() -> None:
    """One template asks for all its pods: for the slice of the largest, so that two share and not four."""
    series = tuple(
        GpuSeries(pod=f"web/chat-{n}", device=f"GPU-{n}", activity=[0.1] * 30, memory=[gib * GIB] * 30)
        for n, gib in enumerate((25, 2, 2, 2))
    )
    (owner,) = waste(Telemetry(start_s=0, step_s=600, series=series), Decimal(1), 0)
    found = advise(owner, A100, DEVICE, serving=True)
    assert {asked for _, asked in found.resources} == {"nvidia.com/mig-3g.40gb"}
    assert (found.kind, found.devices) == ("mig", 2)


def test_a_pod_that_is_idle_shares_nothing() -> None:
    """Its whole device can be had by putting it to rest: it is told once, as idle."""
    assert [one.pod for one in row((2, 0.1), (2, 0.0)).slices] == ["web/a"]


def test_nothing_is_reached_on_devices_of_unknown_memory() -> None:
    """And the advice says what to name."""
    found = advise(row((2, 0.1), (2, 0.1)), A100, 0.0, serving=False)
    assert (found.kind, "--device-gib" in found.why) == ("none", True)


@given(PODS, st.booleans())
def test_parts_that_pods_ask_of_a_device_fit_it(pods: list[tuple[float, float]], serving: bool) -> None:
    """HAMi's memory and work, and KAI's fractions, add up to no more than the devices; KAI is never for serving."""
    for found in saving_ways(row(*pods), A100, DEVICE, serving=serving):
        asks = [
            (one, dict(part.split("=") for part in asked.split(",") if "=" in part)) for one, asked in found.resources
        ]
        if found.kind == "kai":
            assert not serving
            assert all(float(ask["gpu-fraction"]) * DEVICE >= ROOM * one.peak_mib for one, ask in asks)
            assert sum(float(ask["gpu-fraction"]) for _, ask in asks) <= found.devices + 1e-9
        if found.kind == "hami":
            assert all(int(ask["nvidia.com/gpumem"]) >= ROOM * one.peak_mib for one, ask in asks)
            assert sum(int(ask["nvidia.com/gpumem"]) for _, ask in asks) <= found.devices * DEVICE
            work = sum(one.activity for one, _ in asks)
            assert work <= found.devices or not serving or work * CALM <= found.devices


@pytest.mark.parametrize(
    ("name", "mib", "model"),
    [
        ("NVIDIA A100-SXM4-80GB", 81_920, "A100-80GB"),
        ("NVIDIA A100-SXM4-40GB", 40_960, "A100-40GB"),
        ("NVIDIA H100 80GB HBM3", 81_559, "H100-80GB"),
        ("NVIDIA H200", 143_771, "H200-141GB"),
        ("NVIDIA A30", 24_576, "A30"),
        ("Tesla T4", 15_360, None),
        ("Tesla V100-SXM2-16GB", 16_384, None),
        ("NVIDIA H100 NVL", 95_830, None),
    ],
)
def test_a_model_is_known_by_dcgms_name_and_its_memory(name: str, mib: float, model: str | None) -> None:
    """What cannot be cut, or whose profiles are not in the table, is no model."""
    found = model_of(name, mib)
    assert (found.name if found else None) == model
