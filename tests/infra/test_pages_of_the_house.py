"""The pages of the house: its plan and rooms, the changelog by releases, decisions by their sections, links, paths."""

import re
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest

import rooms

ROOT = Path(__file__).resolve().parents[2]
LINES = 60
"""A release of the changelog has no more."""
WORDS = 1200
"""The house has no more, with all that stands in its picture and its table."""
TASKS = 20
"""Kinds of changes that it says a folder for."""
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "infra").rglob("*.md")])

NAMING = sorted(
    [*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SCOPE.md"))]
)
"""The pages that name code as it is now; the changelog names it as it was."""
ROOMS = {
    path.name
    for home in ("", "shared/pilotlight", "shared/pilotlight/tools")
    for path in (ROOT / home).iterdir()
    if path.is_dir() and not path.name.startswith((".", "_")) and path.name not in ("build", "dist")
}
"""Folders by which a path of ours begins: of this repository, of the package and of its tools."""

_FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
_PATH = re.compile(r"(?<![\w/.:@$<-])([a-z_]+(?:/[\w.*-]*\w)+/?)(?![\w/<])")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_RELEASE = re.compile(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", re.M)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _releases() -> list[tuple[str, str, list[str]]]:
    """The changelog's releases as they stand: name, day, lines with the heading."""
    _, *parts = _RELEASE.split((ROOT / "CHANGELOG.md").read_text("utf-8"))
    found = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return [(name, day or "", ["", *text.strip().splitlines()]) for name, day, text in found]


def _anchors(page: Path) -> set[str]:
    """The names by which a page's headings can be linked, as GitHub makes them, and those that it gives itself."""
    text = _FENCE.sub("", page.read_text("utf-8"))
    heads = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in re.findall(r"^#+ (.+)$", text, re.M)}
    return heads | {name.replace("\\", "") for name in re.findall(r'<a name="([^"]+)"', text)}


def test_the_house_is_read_in_one_sitting() -> None:
    """Its page has at most 1,200 words, and says where 20 kinds of changes go."""
    text = (ROOT / "docs" / "house.md").read_text("utf-8")
    assert len(text.split()) <= WORDS
    table = text.partition("## Where do I put")[2].strip().splitlines()
    assert len(table[2:]) == TASKS


def test_the_house_names_only_folders_and_files_that_there_are() -> None:
    """Each path between backticks leads somewhere from the repository's root or from the package."""
    text = (ROOT / "docs" / "house.md").read_text("utf-8")
    named = re.findall(r"`([a-z_]+(?:/[\w.]+)*(?:/|\.py))`", text)
    homes = (ROOT, ROOT / "shared" / "pilotlight")
    assert [path for path in named if not any((home / path).exists() for home in homes)] == []


def test_every_folder_of_the_package_is_on_a_page() -> None:
    """Folders of its first two levels are named by the house or by the rooms."""
    package = ROOT / "shared" / "pilotlight"
    folders = [path.parent.relative_to(package) for path in package.glob("*/**/__init__.py")]
    pages = "".join((ROOT / "docs" / name).read_text("utf-8") for name in ("house.md", "rooms.md"))
    assert [str(folder) for folder in folders if len(folder.parts) <= 2 and f"{folder}/" not in pages] == []


def test_the_rooms_are_as_their_modules_say() -> None:
    """docs/rooms.md is what `make rooms` writes."""
    assert (ROOT / "docs" / "rooms.md").read_text("utf-8") == rooms.page(), "run: make rooms"


def test_a_release_of_the_changelog_is_a_page() -> None:
    """Each has at most 60 lines, its heading and blank lines counted."""
    assert {name: len(lines) for name, _, lines in _releases() if len(lines) > LINES} == {}


def test_the_changelog_goes_from_what_is_unreleased_to_the_first_release() -> None:
    """Unreleased changes stand first, then releases without a gap down to 0.1.0, with days and kinds of change."""
    (first, no_day, _), *released = _releases()
    assert (first, no_day) == ("Unreleased", "")
    assert [name for name, _, _ in released] == [f"0.{minor}.0" for minor in range(len(released), 0, -1)]
    days = [day for _, day, _ in released]
    assert days == sorted(days, reverse=True)
    kinds = {line for _, _, lines in released for line in lines if line.startswith("#")}
    assert kinds <= {"### Added", "### Changed", "### Deprecated", "### Removed", "### Fixed", "### Security"}


def test_the_newest_release_is_the_version_of_the_package() -> None:
    """pyproject.toml says the version that stands below what is unreleased."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert _releases()[1][0] == project["version"]


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_link_leads_somewhere(page: Path) -> None:
    """A page's links into this repository name a file or folder that is there, and a heading that it has."""
    lost = []
    for link in _LINK.findall(_FENCE.sub("", page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = unquote(link).replace("\\", "").partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            lost.append(link)
    assert lost == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "CHANGELOG"], ids=_name)
def test_a_page_names_only_tests_that_there_are(page: Path) -> None:
    """A path that begins with ``tests/`` leads to a file or a folder, from the root or from the page's own folder."""
    named = (
        set(re.findall(r"(?<![\w/.])tests/[\w/.-]*\w", page.read_text("utf-8"))) if page.stem != "CHANGELOG" else set()
    )
    assert [path for path in sorted(named) if not ((ROOT / path).exists() or (page.parent / path).exists())] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "adr").glob("*.md")), ids=_name)
def test_a_decision_has_its_four_sections(page: Path) -> None:
    """Its title has its file's number; status, context, decision and consequences follow, and none is empty."""
    title, *parts = re.split(r"^## ", _FENCE.sub("", page.read_text("utf-8")), flags=re.M)
    assert title.startswith(f"# {int(page.name[:4])}. ")
    assert [part.partition("\n")[0] for part in parts] == ["Status", "Context", "Decision", "Consequences"]
    assert all(part.partition("\n")[2].strip() for part in parts)
    assert re.match(r"Status\n\n(?:Accepted|Superseded), \d{4}-\d\d-\d\d", parts[0])


@pytest.mark.parametrize("page", NAMING, ids=_name)
def test_a_page_names_only_code_that_there_is(page: Path) -> None:
    """A path whose first folder is a room of ours leads to a file, a folder, or a name in a module, as does a port."""
    text = page.read_text("utf-8")
    named = [path for path in _PATH.findall(text) if path.partition("/")[0] in ROOMS]
    named += re.findall(r"`(ports\.\w+)`", text)
    homes = (ROOT, ROOT / "shared" / "pilotlight", page.parent)
    assert [path for path in named if not any(_leads(home, path.rstrip("/")) for home in homes)] == []


def _leads(home: Path, path: str) -> bool:
    """Whether a path leads somewhere from a folder: as it stands, as a module, or as a name in a module."""
    if any(found for pattern in (path, f"{path}.py") for found in home.glob(pattern)):
        return True
    module, _, name = path.rpartition(".")
    modules = [*home.glob(f"{module}.py"), *(home.glob(f"{module}/*.py") if module else ())]
    return any(re.search(rf"\b{name}\b", found.read_text("utf-8")) for found in modules)
