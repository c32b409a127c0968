"""docs/guides/settings.md: its tables of variables, written from what the settings' module says of them."""

import re
from pathlib import Path

from pilotlight import settings

PAGE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "settings.md"
_TABLE = re.compile(r"^=+ +=+$\n(.*?)^=+ +=+$", re.M | re.S)
_PLACE = re.compile(r"<!-- table (\d) -->\n.*?<!-- end -->", re.S)


def main() -> None:
    """Write the page's tables anew."""
    PAGE.write_text(page(PAGE.read_text()))
    print(PAGE)


def page(text: str) -> str:
    """A page with the tables between its marks as the module has them."""
    tables = [_markdown(rows) for rows in _TABLE.findall(settings.__doc__ or "")]
    return _PLACE.sub(lambda place: f"<!-- table {place[1]} -->\n{tables[int(place[1])]}<!-- end -->", text)


def names() -> set[str]:
    """Every variable that the tables name."""
    rows = "".join(_TABLE.findall(settings.__doc__ or ""))
    return set(re.findall(r"^([A-Z_]+) ", rows, re.M))


def _markdown(rows: str) -> str:
    entries: list[list[str]] = []
    for row in rows.splitlines():
        name, _, said = row.partition(" ")
        if name:
            entries.append([name, said.strip()])
        else:
            entries[-1][1] += f" {said.strip()}"
    cells = (f"| `{name}` | {said.replace('``', '`').replace('|', '&#124;')} |" for name, said in entries)
    return "\n".join(["| variable | what it says |", "|---|---|", *cells, ""])


if __name__ == "__main__":
    main()
