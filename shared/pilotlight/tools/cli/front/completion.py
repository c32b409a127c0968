"""Answers to a shell that completes a line, from a table of every command's options and values.

``make reference`` writes the table beside it. Nothing of a command is imported, nor the settings: what a shell asks
stands in variables of its own, which alone are read here.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

TABLE = os.path.join(os.path.dirname(__file__), "completion.json")
ASKS = "_PILOTLIGHT_COMPLETE"
LINE, TYPED = "_TYPER_COMPLETE_ARGS", "_TYPER_COMPLETE_WORD_TO_COMPLETE"
SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
_ZSH = {'"': '""', "'": "''", "$": "\\$", "`": "\\`", ":": "\\\\:"}

Offer = tuple[str, str]
"""A word that fits, and what it is."""


def a_shell_asks() -> bool:
    """True where a shell asks, for words or for its script."""
    return ASKS in os.environ


def answer() -> tuple[str, int] | None:
    """What the shell reads, and the exit code; None where no shell that is known asks for words."""
    environ = os.environ
    verb, _, shell = environ.get(ASKS, "").partition("_")
    if verb != "complete" or shell not in SHELLS:
        return None
    words, begun = _bash(environ) if shell == "bash" else _line(environ, shell)
    with open(TABLE, encoding="utf-8") as file:
        found = offers(json.load(file), words, begun)
    if shell == "fish" and environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        return "", 0 if found else 1  # Without an offer fish completes names of files.
    return _shown(shell, found), 0


def offers(table: dict[str, Any], words: list[str], begun: str) -> list[Offer]:
    """The words that may stand where ``begun`` does, after ``words``: commands, options or an option's values."""
    path, waits, given = _read(table, words)
    options = table[path]["options"]
    if waits:
        return _values(options, waits, begun)
    if begun.startswith("-") and "--" not in words:
        name, joined, value = begun.partition("=")
        if joined:
            return [(f"{name}={each}", told) for each, told in _values(options, name, value)]
        return [
            (each, row["told"])
            for each, row in options.items()
            if each.startswith(begun) and (row.get("many") or row.get("of", each) not in given)
        ]
    return [(each, told) for each, told in table[path].get("commands", {}).items() if each.startswith(begun)]


def _read(table: dict[str, Any], words: list[str]) -> tuple[str, str, list[str]]:
    """The command that the words come to, its option that waits for a value, and its options that have one."""
    path, waits, given = "", "", []
    for word in words:
        options, commands = table[path]["options"], table[path].get("commands", {})
        if word == "=":  # Bash takes it for a word of its own.
            continue
        name, joined, _ = word.partition("=")
        if waits:
            waits = ""
        elif name in options:
            given.append(options[name].get("of", name))
            waits = name if "values" in options[name] and not joined else ""
        elif word in commands:
            path, given = f"{path} {word}".strip(), []
        elif commands and not word.startswith("-"):
            break  # No command of that name: nothing is known of what follows.
    return path, waits, given


def _values(options: dict[str, Any], name: str, begun: str) -> list[Offer]:
    return [(value, "") for value in options.get(name, {}).get("values", ()) if value.startswith(begun)]


def _bash(environ: Mapping[str, str]) -> tuple[list[str], str]:
    """The words before the one that bash completes, and what of that one is typed. Bash parts words by lines."""
    line, at = environ.get("COMP_WORDS", ""), environ.get("COMP_CWORD", "")
    words = line.split("\n") if "\n" in line else line.split()
    place = int(at) if at.isdecimal() else len(words)
    begun = words[place] if place < len(words) else ""
    return words[1:place], "" if begun == "=" else begun


def _line(environ: Mapping[str, str], shell: str) -> tuple[list[str], str]:
    """The same of shells that hand over the line as it is typed."""
    line = environ.get(LINE, "")
    words = line.split()[1:]
    if any(mark in line for mark in "'\"\\"):
        words = _unquoted(line)[1:]
    if shell in ("powershell", "pwsh"):
        begun = environ.get(TYPED, "")
    else:
        begun = "" if line.endswith(" ") else "".join(words[-1:])
    return (words[:-1] if begun else words), begun


def _unquoted(line: str) -> list[str]:
    """The words of a line with quotes, the last perhaps still open."""
    import shlex

    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:
        words.append(lexer.token)
    return words


def _shown(shell: str, found: list[Offer]) -> str:
    """The offers as the shell's script reads them."""
    if shell == "zsh":
        words = "\n".join(f'"{_quoted(word)}"' + (f':"{_quoted(told)}"' if told else "") for word, told in found)
        return f"_arguments '*: :(({words}))'\n" if found else "_files\n"
    return "".join(f"{line}\n" for line in _lines(shell, found))


def _lines(shell: str, found: list[Offer]) -> Iterator[str]:
    for word, told in found:
        if shell == "bash":
            yield word
        elif shell == "fish":
            yield f"{word}\t{told}" if told else word
        else:
            yield f"{word}:::{told or ' '}"


def _quoted(text: str) -> str:
    return "".join(_ZSH.get(sign, sign) for sign in text)
