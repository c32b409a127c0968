"""The check of prose: each rule finds the one bad sentence that is planted, and code, tables and addresses stay out."""

import re

import pytest

from prose import flaws, linted, listed, read_html, read_module, read_page

LONG = " ".join(["A node is bought"] + ["for a pod"] * 8 + ["that waits."])
PLANTED = [
    (LONG, "words", False),
    (LONG.replace("that waits", "that waits for it there"), "33 words, 30 at most", True),
    ("What a node costs is counted.", "name the thing first", True),
    ("Whoever holds a node pays for it.", "name the thing first", True),
    ("Those that wait are told.", "name the thing first", True),
    ("The node is idle. Who pays for it is known.", "name the thing first", True),
    ("What is this node?", "name the thing first", False),
    ("A rival scales the pool.", "say other autoscaler", True),
    ("The node was put out at noon.", "say release", True),
    ("Relighting it costs more.", "say buy again", True),
]


@pytest.mark.parametrize(("said", "told", "found"), PLANTED)
def test_a_planted_sentence_is_found_by_its_rule(said: str, told: str, found: bool) -> None:
    """Each rule refuses its sentence and lets its neighbour pass."""
    page = [flaw.told for flaw in flaws(list(read_page("docs/a.md", f"# A page\n\n{said}\n")), listed())]
    module = [flaw.told for flaw in flaws(list(read_module("a.py", f"raise Failed(f{said!r})")), listed())]
    assert any(told in each for each in page) is found
    if re.search(r"(\w+ ){4}", said):
        assert page == module


def test_proselint_reads_the_same_passages() -> None:
    """A doubled word is named with the line of its paragraph."""
    passages = list(read_page("docs/a.md", "# A page\n\nAll is well.\n\nThe the node is idle.\n"))
    assert [(flaw.line, flaw.told.split(":")[0]) for flaw in linted("docs/a.md", passages)] == [
        (5, "lexical_illusions")
    ]


def test_code_tables_and_addresses_are_left_out() -> None:
    """Code, a table of a guide, an address and a comment are no prose; a reference's last cell is."""
    text = (
        "<!-- needs: a rival -->\n```\na rival\n```\n\n| rival | rival |\n\n"
        "A `rival` in [a page](rival.md) at https://rival/.\n"
    )
    assert not list(flaws(list(read_page("docs/guides/a.md", text)), listed()))
    cells = [passage.text for passage in read_page("docs/reference/a.md", "| `--x` | Its name. |\n|---|---|\n")]
    assert cells == ["Its name."]


def test_docstrings_commands_and_lists_of_names_are_no_prose() -> None:
    """A module's texts are its messages, each field of an f-string one word."""
    module = (
        '"""A rival of the pool is named here."""\n'
        'COLUMNS = "by_pool the rival of the pool"\nLINE = "kubectl label node the rival pool"\n'
        'raise Failed(f"{node} is not one of {pool}: see the policy")\n'
    )
    assert [passage.text for passage in read_module("a.py", module)] == ["Code1 is not one of Code2: see the policy"]


def test_a_web_page_is_read_between_its_tags_and_in_its_script() -> None:
    """Style and names of code are no prose; a string of the script is, each field one word, with its line."""
    text = (
        "<style>a { content: 'a rival of the pool' }</style>\n<p>The pool has a rival.</p>\n<script>\n"
        "const a = few(one, two, three);\n"
        'say(`${a.b({c: 1})} is a rival of ${pool}`, "at most one rival a pool");\n</script>'
    )
    assert [(passage.line, passage.text) for passage in read_html("a.html", text)] == [
        (2, "The pool has a rival."),
        (5, "Code1 is a rival of Code2"),
        (5, "at most one rival a pool"),
    ]
