"""Writes the Terraform modules as one archive, byte for byte the same of the same commit.

``python scripts/release/terraform_archive.py v1.2.3 FOLDER``. Terraform takes a module of it by
``source = "https://.../pilotlight-terraform-1.2.3.tar.gz//google"`` or ``//aws``: modules name each other by paths
inside. Only files that git tracks are in it, without tests and this repository's own environments. Needs no package.
"""

import gzip
import io
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = "infra/terraform"
LEFT_OUT = ("tests", "environments")


def files() -> list[str]:
    """The modules' files, below the folder of all of them, in order."""
    told = subprocess.run(["git", "-C", ROOT, "ls-files", MODULES], capture_output=True, text=True, check=True).stdout
    found = sorted(path.removeprefix(f"{MODULES}/") for path in told.splitlines())
    return [path for path in found if not {*Path(path).parts} & {*LEFT_OUT}] + ["LICENSE"]


def archive() -> bytes:
    """The archive: no times, no owners."""
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for name in files():
            body = (ROOT / name if name == "LICENSE" else ROOT / MODULES / name).read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(body), 0o644
            tar.addfile(entry, io.BytesIO(body))
    return made.getvalue()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: terraform_archive.py TAG FOLDER")
    path = Path(sys.argv[2]) / f"pilotlight-terraform-{sys.argv[1].removeprefix('v')}.tar.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(archive())
    print(path)
