"""The tables of inputs and outputs in the READMEs of infra/terraform, in the format of terraform-docs.

They stand between the marks that terraform-docs knows (BEGIN_TF_DOCS, END_TF_DOCS), so that either may write them.
What a root and its module both take or tell is described once, in the module: the root's descriptions are copies.
"""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TERRAFORM = Path(__file__).resolve().parents[1] / "infra" / "terraform"
FOLDERS = (
    TERRAFORM,
    TERRAFORM / "google",
    TERRAFORM / "aws",
    TERRAFORM / "aws" / "root",
    TERRAFORM / "google_aws",
    TERRAFORM / "google_aws" / "root",
    *sorted((TERRAFORM / "modules").iterdir()),
)
BEGIN, END = "<!-- BEGIN_TF_DOCS -->", "<!-- END_TF_DOCS -->"
ROOTS = {
    TERRAFORM: TERRAFORM / "google",
    TERRAFORM / "aws" / "root": TERRAFORM / "aws",
    TERRAFORM / "google_aws": TERRAFORM / "google",
    TERRAFORM / "google_aws" / "root": TERRAFORM / "google_aws",
}
"""Each root that is deployed, or module, and the module that it passes its values on to."""

_BLOCK = re.compile(r'^(variable|output) "(\w+)" \{\n(.*?)^\}', re.M | re.S)
_ARGUMENT = re.compile(r"^  (\w+) += ")


class Block(NamedTuple):
    """A variable or an output: its name, and what is written of each of its arguments."""

    kind: str
    name: str
    said: dict[str, str]


def main() -> None:
    """Write every root's descriptions anew, then every README's tables."""
    for root, module in ROOTS.items():
        for name in ("variables.tf", "outputs.tf"):
            (root / name).write_text(described((root / name).read_text(), module))
    for folder in FOLDERS:
        readme = folder / "README.md"
        readme.write_text(page(readme.read_text(), folder))
        print(readme)


def page(text: str, folder: Path) -> str:
    """A README with the tables of its folder: between the marks, or at its end."""
    made = f"{BEGIN}\n{tables(folder)}{END}"
    if BEGIN not in text:
        return f"{text.rstrip()}\n\n{made}\n"
    return re.sub(f"{BEGIN}.*?{END}", lambda _: made, text, flags=re.DOTALL)


def described(text: str, module: Path) -> str:
    """A root's variables or outputs with the descriptions that the module's of the same name have."""
    said = {(block.kind, block.name): block.said["description"] for block in blocks(module)}

    def copied(found: re.Match[str]) -> str:
        own = dict(_arguments(found[3]))["description"]
        return found[0].replace(own, said.get((found[1], found[2]), own), 1)

    return _BLOCK.sub(copied, text)


def tables(folder: Path) -> str:
    """Inputs and outputs, each in the order of their names."""
    found = sorted(blocks(folder), key=lambda block: block.name)
    inputs = [_input(block) for block in found if block.kind == "variable"]
    outputs = [_output(block) for block in found if block.kind == "output"]
    return "\n".join(
        [
            *("## Inputs", "", "| Name | Description | Type | Default | Required |"),
            *("|------|-------------|------|---------|:--------:|", *inputs, ""),
            *("## Outputs", "", "| Name | Description |", "|------|-------------|", *outputs, ""),
        ]
    )


def blocks(folder: Path) -> Iterator[Block]:
    """Every variable and output of a folder."""
    for path in sorted(folder.glob("*.tf")):
        for kind, name, body in _BLOCK.findall(path.read_text()):
            yield Block(kind, name, dict(_arguments(body)))


def _arguments(body: str) -> Iterator[tuple[str, str]]:
    """Arguments at the first depth, each with all its lines."""
    lines = body.splitlines()
    starts = [n for n, line in enumerate(lines) if re.match(r"  \S", line) and not re.match(r"  [})\]]|  EOT", line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        if match := _ARGUMENT.match(lines[start]):
            yield match[1], "\n".join([lines[start][match.end() :], *lines[start + 1 : end]]).strip()


def _input(block: Block) -> str:
    default = block.said.get("default")
    cells = [_name("input", block), _text(block), _code(block.said["type"]), _code(default) if default else "n/a"]
    return f"| {' | '.join(cells)} | {'no' if default else 'yes'} |"


def _output(block: Block) -> str:
    return f"| {_name('output', block)} | {_text(block)} |"


def _name(kind: str, block: Block) -> str:
    escaped = block.name.replace("_", "\\_")
    return f'<a name="{kind}_{block.name}"></a> [{escaped}](#{kind}\\_{escaped})'


def _text(block: Block) -> str:
    said = block.said["description"]
    if said.startswith("<<-EOT"):
        said = textwrap.dedent("\n".join(said.splitlines()[1:-1])).strip()
    else:
        said = said[1:-1].replace('\\"', '"')
    return said.replace("|", "\\|").replace("\n", "<br/>")


def _code(text: str) -> str:
    if "\n" not in text:
        return f"`{text}`"
    lines = text.splitlines()
    inside = textwrap.dedent("\n".join(f"  {line}" if n == 0 else line for n, line in enumerate(lines)))
    return f"<pre>{'<br/>'.join(inside.strip().splitlines())}</pre>"


if __name__ == "__main__":
    main()
