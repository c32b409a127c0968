"""docs/guides/settings.md holds every variable that is read, as the settings' module says it."""

import re
from pathlib import Path

import settings_table

ROOT = Path(__file__).parents[2]
READ = re.compile(r"""environ(?:\.get\(|\[)\s*"([A-Z_]+)\"""")
OURS = ROOT / "shared" / "pilotlight"

ELSEWHERE = {
    "KUBECONFIG": "kubectl's own, which connect and doctor take for --kubeconfig",
    "KUBERNETES_SERVICE_HOST": "set in every pod",
    "KUBERNETES_SERVICE_PORT": "set in every pod",
    "COMP_WORDS": "set by a shell that completes a line",
    "COMP_CWORD": "set by a shell that completes a line",
    "_TYPER_COMPLETE_FISH_ACTION": "set by a shell that completes a line",
    "HOME": "the person's own",
    "MONITORING_EMULATOR_HOST": "a stand-in of Cloud Monitoring's, which has no emulator",
    "QUERY_STRING": "a request's own",
    "REQUEST_METHOD": "a request's own",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "set by EKS in a pod whose account has a role",
}
"""Read, and nobody sets them for Pilotlight."""


def test_the_page_is_what_the_settings_say() -> None:
    """Whoever changes a variable's meaning writes the page again."""
    text = (ROOT / "docs" / "guides" / "settings.md").read_text()
    assert text == settings_table.page(text), "run: python scripts/settings_table.py"
    assert "| `PILOTLIGHT_STATE` |" in text


def test_every_variable_that_is_read_is_on_the_page() -> None:
    """None is read in silence, and none is promised that nothing reads."""
    files = [path for path in OURS.rglob("*.py") if path.name not in ("bridge.py", "request_gate.py")]
    read = {name for path in files for name in READ.findall(path.read_text())}
    named = settings_table.names()
    assert read - ELSEWHERE.keys() <= named
    assert {name for name in named if name.startswith("PILOTLIGHT_")} <= read
