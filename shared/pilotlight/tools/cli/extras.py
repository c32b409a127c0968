"""Which extra brings a package that is not installed, as the installed distribution's own metadata says."""

import re
from importlib import metadata

COMES_WITH = {"botocore": "boto3", "grpc": "grpcio", "pynvml": "nvidia-ml-py"}
"""A package that the metadata does not name, and the one that brings it."""

OURS = ("dev", "functions")
"""Extras that no person installs: for work on it, and for the zips of functions."""

_REQUIRED = re.compile(r"""([\w.-]+).*\bextra\s*==\s*["']([\w-]+)["']""")


def advice(error: ModuleNotFoundError) -> str:
    """One line on what to install; empty for a package of no extra, which is not the user's to mend."""
    extras = _extras(error.name or "")
    if not extras:
        return ""
    return f"the package {error.name} is not installed; run " + " or ".join(
        f"pip install 'pilotlight[{extra}]'" for extra in extras
    )


def _extras(module: str) -> list[str]:
    """The extras that bring a module. ``google.auth`` is of a package whose name begins with ``google-``."""
    top = module.partition(".")[0].replace("_", "-").lower()
    package = COMES_WITH.get(top, top)
    try:
        required = metadata.requires("pilotlight") or []
    except metadata.PackageNotFoundError:
        return []
    found = [match.groups() for match in map(_REQUIRED.match, required) if match]
    return sorted(
        {
            extra
            for name, extra in found
            if extra not in OURS and (name.lower() == package or name.lower().startswith(f"{package}-"))
        }
    )
