"""The Dockerfile's steps as `make image-steps` takes them, which fails where the image does not serve."""

import re
from pathlib import Path

import pytest

import try_image


def test_every_instruction_of_the_dockerfile_is_tried() -> None:
    """Two stages of one base, and no word that the trial would pass over."""
    first, last = try_image.stages()
    assert first[0][1].removesuffix(" AS build") == last[0][1]
    assert {word for word, _ in last} >= {"COPY", "ENV", "USER", "WORKDIR", "HEALTHCHECK", "ENTRYPOINT", "CMD"}


def test_its_base_is_one_image_that_is_named_by_digest_and_rebuilt() -> None:
    """Both stages are of the digest of a day that is told, and a workflow looks for a newer one every week."""
    text = try_image.DOCKERFILE.read_text()
    assert re.search(r"^ARG PYTHON=3\.11\.\d+-slim-bookworm@sha256:[0-9a-f]{64}$", text, re.M)
    assert set(re.findall(r"^FROM (\S+)", text, re.M)) == {"python:${PYTHON}"}
    assert re.search(r"all platforms of \d+ \w+ 2026", text)
    rebuild = (try_image.DOCKERFILE.parents[3] / ".github" / "workflows" / "rebuild.yml").read_text()
    assert {"schedule:", "PYTHON"} <= {word for word in ("schedule:", "PYTHON") if word in rebuild}


def test_a_word_that_is_not_tried_stops_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, with what to do."""
    (tmp_path / "Dockerfile").write_text("FROM debian\nVOLUME /data\n")
    monkeypatch.setattr(try_image, "DOCKERFILE", tmp_path / "Dockerfile")
    with pytest.raises(SystemExit, match=r"VOLUME is not tried here; add it to scripts/try_image.py"):
        try_image.stages()


def test_a_step_sees_its_own_environment_and_writes_where_it_may() -> None:
    """The root is bound for reading, and what this process has in its environment stays outside."""
    words = try_image.inside(Path("/image"), {"A": "1"}, ["--uid", "0"], ["true"])
    assert words[words.index("--ro-bind") :][:3] == ["--ro-bind", "/image/root", "/"]
    assert {"--clearenv", "--unshare-user"} <= set(words)
    assert words[-3:] == ["--uid", "0", "true"]


def test_what_is_said_of_names_is_put_in_their_place() -> None:
    """ARG and ENV may name what was said before them."""
    given = {"EPOCH": "7"}
    assert dict(try_image.assigned("A=${EPOCH} PATH=/venv:$PATH", given)) == {"A": "7", "PATH": "/venv:"}
