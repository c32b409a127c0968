"""`bench/money/money_month.py`: days of three clusters, worked out again by a script that knows no line of ours."""

import json
import runpy
import sys
from pathlib import Path

import pytest

pytest.importorskip("duckdb")

BENCH = Path(__file__).parents[3] / "bench" / "money"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five days of five teams on three clusters, in dollars and euros, and a bill that comes late and is corrected."""
    folder = tmp_path_factory.mktemp("month")
    sys.path.insert(0, str(BENCH))
    try:
        import money_month

        money_month.simulate(folder, 5, read_every=2)
    finally:
        sys.path.remove(str(BENCH))
    return folder


def _recount(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["recount.py", str(folder)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(BENCH / "recount.py"), run_name="__main__")
    return int(ended.value.code or 0)


def test_every_line_is_what_happened(
    played: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was metered by day, pool and team, what was billed, and where budgets stand."""
    assert _recount(played, monkeypatch) == 0, capsys.readouterr().out
    assert "lines agree" in capsys.readouterr().out


def test_a_cent_that_is_wrong_is_found(
    played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script is not content with what it is told."""
    told = json.loads((played / "told.json").read_text())
    line = next(iter(told["eu"]["billed"]))
    told["eu"]["billed"][line] = str(float(told["eu"]["billed"][line]) + 0.01)
    for name in ("raw.json", "charges.json"):
        (tmp_path / name).write_text((played / name).read_text())
    (tmp_path / "told.json").write_text(json.dumps(told))
    assert _recount(tmp_path, monkeypatch) == 1
    assert line in capsys.readouterr().out


def test_the_script_imports_nothing_of_the_product() -> None:
    """Else both could be wrong in the same way."""
    assert "import pilotlight" not in (source := (BENCH / "recount.py").read_text())
    assert "from pilotlight" not in source
