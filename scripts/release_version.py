"""Says whether a tag is the version of pyproject.toml, changelog and chart; writes a release's image into the chart.

``python scripts/release_version.py v1.2.3 [--image REPOSITORY --digest sha256:...]``. Needs no package.
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "infra" / "helm" / "pilotlight"


def main() -> None:
    """Exits with one line where they differ."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("tag")
    asked.add_argument("--image", default="")
    asked.add_argument("--digest", default="")
    told = asked.parse_args()
    found = versions()
    if set(found.values()) != {told.tag.removeprefix("v")}:
        differ = ", ".join(f"{name} {version}" for name, version in found.items())
        sys.exit(f"error: the tag is {told.tag}, and {differ}: write one version into all, or tag that one")
    if told.image:
        values = CHART / "values.yaml"
        values.write_text(with_image(values.read_text(), told.image, told.digest))
    print(told.tag.removeprefix("v"))


def versions() -> dict[str, str]:
    """Each place that says the version."""
    chart = (CHART / "Chart.yaml").read_text()
    said = {key: re.findall(rf"^{key}: (.+)$", chart, re.MULTILINE)[0] for key in ("version", "appVersion")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    newest = re.findall(r"^## \[(\d[^\]]*)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    return {
        "pyproject.toml": project,
        "CHANGELOG.md": newest,
        **{f"Chart.yaml {key}": value for key, value in said.items()},
    }


def with_image(values: str, repository: str, digest: str) -> str:
    """The chart's values with an image as their default. Raises ``ValueError`` where they have no place for it."""
    for key, value in (("repository", repository), ("digest", digest)):
        values, count = re.subn(rf'^(  {key}: )""', rf'\g<1>"{value}"', values, count=1, flags=re.MULTILINE)
        if count != 1:
            raise ValueError(f"values.yaml has no empty image.{key}")
    return values


if __name__ == "__main__":
    main()
