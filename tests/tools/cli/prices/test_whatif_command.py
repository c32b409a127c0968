"""``pilotlight whatif``, as a person runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PILOTLIGHT = Path(sys.executable).parent / "pilotlight"


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PILOTLIGHT, "whatif", *words], capture_output=True, check=False, text=True)


def test_all_cases_are_told_with_their_inputs_and_source() -> None:
    """Without a name every example is there, with the month it goes by and where it comes from."""
    out = _run().stdout
    for words in ("$191,376.80", "730 h a month", "96.15 %", "as printed, not right"):
        assert words in out


def test_an_input_of_ones_own_takes_the_articles_place() -> None:
    """--set changes one input of the named case, exactly."""
    told = json.loads(_run("scale-to-zero", "--set", "nodes=1", "--json").stdout)["scale-to-zero"]
    assert (told["inputs"]["nodes"], told["figures"][0]["value"]) == ("1", "23922.10")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(["nope"], "nope: no such case; name one of scale-to-zero", id="a case there is not"),
        pytest.param(["mig", "--set", "gpus=1"], "named services", id="an input there is not"),
        pytest.param(["mig", "--set", "services=many"], "write KEY=NUMBER", id="no number"),
        pytest.param(["mig", "--set", "slices_per_gpu=0"], "look at the ones that are zero", id="a zero that divides"),
        pytest.param(["--set", "nodes=1"], "name it", id="an input without its case"),
    ],
)
def test_bad_input_is_one_line(words: list[str], says: str) -> None:
    """What cannot be worked out is refused in one line, with exit code 2."""
    done = _run(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert says in done.stderr
