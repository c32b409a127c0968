"""The bill of materials of a venv, as CycloneDX, with every package's licence texts beside it.

``python scripts/sbom.py VENV OUT`` writes ``OUT/sbom.cdx.json`` and ``OUT/licenses/NAME/...``. The same packages give
the same bytes: it holds no time and no random number. Source: CycloneDX 1.6, cyclonedx.org/docs/1.6/json.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

OWN = "pilotlight"
CLASSIFIER = "License :: "
TEXTS = re.compile(r"(^|/)(licen[cs]e|copying|notice|authors)[^/]*$", re.IGNORECASE)
LONGEST_NAME = 64
"""A longer field License is the text itself."""


def main(words: Sequence[str]) -> None:
    """Write both. Exits with one line where a package tells no licence at all."""
    venv, out = map(Path, words)
    found = sorted(installed(venv), key=_name)
    silent = [_name(each) for each in found if not licences(each)]
    if silent:
        sys.exit(f"error: {', '.join(silent)}: no licence is told; look it up before it is shipped")
    out.mkdir(parents=True, exist_ok=True)
    (out / "sbom.cdx.json").write_text(json.dumps(bill(found), indent=2, sort_keys=True) + "\n")
    for each in found:
        _copy_texts(each, out / "licenses" / _name(each))


def installed(venv: Path) -> list[Distribution]:
    """Every distribution of a venv."""
    return list(distributions(path=[str(path) for path in venv.glob("lib/python*/site-packages")]))


def bill(found: Sequence[Distribution]) -> dict[str, Any]:
    """The document: this package, and as components all others with what each needs of them."""
    here = {_name(each): each for each in found}
    needed = [{"ref": _ref(each), "dependsOn": sorted(map(_ref, _needs(each, here)))} for each in found]
    metadata = {"component": _component(here[OWN], "application")} if OWN in here else {}
    others = [_component(each, "library") for each in found if _name(each) != OWN]
    head = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
    }
    return {**head, "version": 1, "metadata": metadata, "components": others, "dependencies": needed}


def licences(each: Distribution) -> list[dict[str, Any]]:
    """As the document has them: an SPDX expression where the package tells one, else the names it gives."""
    told = each.metadata
    if told["License-Expression"]:
        return [{"expression": told["License-Expression"]}]
    named = [line.rpartition(" :: ")[2] for line in told.get_all("Classifier", []) if line.startswith(CLASSIFIER)]
    field = (told["License"] or "").strip()
    if not named and field:
        named = [field if len(field) <= LONGEST_NAME and "\n" not in field else field.splitlines()[0].strip()]
    return [{"license": {"name": name}} for name in dict.fromkeys(named)]


def _component(each: Distribution, kind: str) -> dict[str, Any]:
    head = {"type": kind, "bom-ref": _ref(each), "purl": _ref(each)}
    return {**head, "name": _name(each), "version": each.version, "licenses": licences(each)}


def _ref(each: Distribution) -> str:
    return f"pkg:pypi/{_name(each)}@{each.version}"


def _name(each: Distribution) -> str:
    return _normal(each.metadata["Name"])


def _normal(name: str) -> str:
    """As package registries compare names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _needs(each: Distribution, here: dict[str, Distribution]) -> Iterator[Distribution]:
    """Packages that it names and that are there: markers and extras are settled by what was installed."""
    names = {_normal(re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]) for line in each.requires or ()}
    return (here[name] for name in names & here.keys() - {_name(each)})


def _copy_texts(each: Distribution, out: Path) -> None:
    for path in each.files or ():
        if ".dist-info/" in str(path) and TEXTS.search(str(path)):
            out.mkdir(parents=True, exist_ok=True)
            (out / path.name).write_bytes(Path(str(path.locate())).read_bytes())


if __name__ == "__main__":
    main(sys.argv[1:])
