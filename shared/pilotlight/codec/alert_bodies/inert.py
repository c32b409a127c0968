"""Text in which no markup is left, for receivers without an escape: signs with a meaning become their likes."""

import re

_SIGNS = str.maketrans({"*": "∗", "`": "ˋ", "~": "∼"})
_MORE_SIGNS = str.maketrans(
    {"<": "‹", ">": "›", "@": "＠", "#": "＃", "[": "［", "]": "］", "|": "¦", "\\": "＼", "!": "ǃ"}
)
_UNDERSCORE = re.compile(r"(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_EMOJI = re.compile(r":(?=\S*:)")
_QUOTE = re.compile(r"^(\s*)>", re.M)
_LIST = re.compile(r"^(\s*)([-+]|\d+[.)])(?=\s)", re.M)
_SCHEME = re.compile(r":(?=//)")
_WWW = re.compile(r"\b(www)\.", re.I)


def strip_formatting(text: str) -> str:
    """Without signs that set type in Slack's markup, of the same length. An underscore within a name stays."""
    text = _UNDERSCORE.sub("＿", text.translate(_SIGNS))
    return _QUOTE.sub(r"\1›", _EMOJI.sub("꞉", text))


def strip_links(text: str) -> str:
    """Without addresses that a reader's program would make links of, of the same length."""
    return _WWW.sub(r"\1․", _SCHEME.sub("꞉", text))


def inert(text: str) -> str:
    """Without what any of the markups that are around gives a meaning: for receivers of which nothing is known."""
    text = strip_links(strip_formatting(text)).translate(_MORE_SIGNS)
    return _LIST.sub(lambda found: found[1] + found[2].translate({45: "‐", 43: "＋", 46: "․", 41: "）"}), text)
