"""Text that gzip packed lies unpacked while it is read, where it has room, and is gone after, whatever comes of it."""

import gzip
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from pilotlight.adapters.bills import packed
from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.adapters.bills.packed import CutOff, unpack_texts
from pilotlight.decide.money.bills.bill_scope import Rules
from pilotlight.facts.money.bill import Bill

pytest.importorskip("duckdb")

START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
TEXT = "BilledCost,ChargePeriodStart,ChargePeriodEnd,ResourceId\n" + "".join(
    f"{n}.25,2026-11-{1 + n % 28:02}T00:00:00Z,2026-11-{1 + n % 28:02}T01:00:00Z,i-{n:010x}\n" for n in range(3000)
)
WHOLE = sum((Decimal(f"{n}.25") for n in range(3000)), Decimal(0))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files lie."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def _packed(path: Path, text: str = TEXT) -> Path:
    path.write_bytes(gzip.compress(text.encode()))
    return path


def _read(where: str | Path) -> Bill:
    return FocusBills(str(where), Rules()).read(START, END)


def _usd(bill: Bill) -> Decimal:
    return sum((row.usd for row in bill.days), Decimal(0))


@contextmanager
def _files_of_at_most(size: int) -> Iterator[None]:
    """A process that cannot write a larger file, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_text_lies_unpacked_while_it_is_read_and_is_gone_after(tmp_path: Path, place: Path) -> None:
    """Its place is found by the packed file's name, and the folder of it is removed."""
    file = _packed(tmp_path / "a.csv.gz")
    with unpack_texts([file, tmp_path / "b.csv"]) as texts:
        assert {name: Path(text).read_text() for name, text in texts.items()} == {str(file): TEXT}
    assert not list(place.iterdir())


@pytest.mark.parametrize("many", [0, 1, 2])
def test_a_bill_is_the_same_whether_its_text_has_room_or_not(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    """Two parts, of which none, one or both have room; nothing is left behind."""
    for part in (1, 2):
        _packed(tmp_path / f"bill-{part}.csv.gz", TEXT.replace("i-0", f"i-{part}"))
    listed = FocusBills(f"{tmp_path}/*.gz", Rules()).files()
    monkeypatch.setattr(packed, "MOST_UNPACKED", many * len(TEXT) + 10)
    with unpack_texts([Path(name) for name in listed.names]) as texts:
        assert len(texts) == many
    assert _usd(_read(tmp_path / "*.gz")) == 2 * WHOLE
    assert not list(place.iterdir())


def test_a_text_that_the_disk_has_no_room_for_is_left_packed(tmp_path: Path, place: Path) -> None:
    """What was written of it is removed at once, not at the end."""
    file = _packed(tmp_path / "a.csv.gz")
    with _files_of_at_most(len(TEXT) // 2), unpack_texts([file]) as texts:
        assert (texts, [list(one.iterdir()) for one in place.iterdir()]) == ({}, [[]])


@pytest.mark.parametrize("room", [10, 2 * len(TEXT)])
def test_a_file_that_is_cut_off_leaves_no_text_behind(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """It is refused with room and without."""
    file = _packed(tmp_path / "a.csv.gz")
    file.write_bytes(file.read_bytes()[:-4])
    monkeypatch.setattr(packed, "MOST_UNPACKED", room)
    with pytest.raises(CutOff, match=r"a\.csv\.gz is cut off"), unpack_texts([file]):
        raise AssertionError("it was handed over")
    assert _read(file).findings[0].message == "cannot be read: a.csv.gz is cut off; write it again"
    assert not list(place.iterdir())


def test_a_packed_text_that_is_no_export_leaves_no_text_behind(tmp_path: Path, place: Path) -> None:
    """Its bytes are no UTF-8: DuckDB refuses it, and its own name is told, not that of its text."""
    file = tmp_path / "a.csv.gz"
    file.write_bytes(gzip.compress(TEXT.encode() + b"1,\xff\xfe,\xff,x\n"))
    told = _read(file).findings[0].message
    assert told.startswith("cannot be read: ")
    assert str(place) not in told
    assert not list(place.iterdir())
