"""Every Terraform root holds its providers to one version and its checksums."""

import hashlib
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from terraform_rules import called
from terraform_runs import needs_terraform

ROOT = Path(__file__).resolve().parents[3]
TERRAFORM = ROOT / "infra" / "terraform"
ROOTS = {
    "google": TERRAFORM,
    "aws": TERRAFORM / "aws" / "root",
    "google-aws": TERRAFORM / "google_aws" / "root",
}
"""The roots by what make calls CLOUD."""
REGISTRY = "registry.terraform.io/"
LOCK = ".terraform.lock.hcl"
ZIP_HASH = re.compile(r'^    "zh:([0-9a-f]{64})",$', re.M)
PLATFORMS = re.findall(r"-platform=(\w+)", (ROOT / "Makefile").read_text())

Version = tuple[int, ...]


def _version(text: str) -> Version:
    return tuple(int(part) for part in text.split("."))


def _locked(text: str) -> dict[str, str]:
    """The block of each provider, by its source."""
    return dict(re.findall(rf'^provider "{REGISTRY}([\w/-]+)" \{{\n(.*?)^\}}', text, re.M | re.S))


def _required(root: Path) -> dict[str, str]:
    """What the root and every module that it calls ask for, by source."""
    asked: dict[str, str] = {}
    for path in called(root):
        for file in path.glob("*.tf"):
            asked |= dict(re.findall(r'source += "(hashicorp/[\w-]+)"\n +version = "([^"]+)"', file.read_text()))
    return asked


@pytest.mark.parametrize("cloud", ROOTS)
def test_every_provider_of_a_root_is_locked(cloud: str) -> None:
    """Each provider is held to a version within what is asked, with a checksum for every platform that is named."""
    asked, locked = _required(ROOTS[cloud]), _locked((ROOTS[cloud] / LOCK).read_text())
    assert set(locked) == set(asked)
    for source, block in locked.items():
        version = _version(re.findall(r'version     = "([\d.]+)"', block)[0])
        low, high = (_version(bound) for bound in re.findall(r"[>=<]+ ([\d.]+)", asked[source]))
        assert low <= version < high
        assert len(set(ZIP_HASH.findall(block))) >= len(PLATFORMS) > 3
        assert "zh:" not in ZIP_HASH.sub("", block), "a checksum that is none"


def test_roots_hold_one_provider_to_the_same() -> None:
    """What several roots use is the same version with the same checksums."""
    google, aws, both = (_locked((root / LOCK).read_text()) for root in ROOTS.values())
    assert both == google | aws


def test_make_knows_every_root() -> None:
    """`make deploy CLOUD=...` finds each root, and the release writes the lock file of each."""
    makefile = (ROOT / "Makefile").read_text()
    told = dict(re.findall(r"^ROOT_([\w-]+) := (\S+)$", makefile, re.M))
    assert {cloud: ROOT / path for cloud, path in told.items()} == ROOTS
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert set(re.findall(r"make providers CLOUD=([\w-]+)", release)) == set(ROOTS)


def test_git_keeps_the_lock_files() -> None:
    """Nothing in .gitignore drops a lock file."""
    for root in ROOTS.values():
        ignored = subprocess.run(["git", "check-ignore", "--no-index", "-q", str(root / LOCK)], cwd=ROOT, check=False)
        assert ignored.returncode == 1


class Mirror:
    """A copy of the root on AWS beside a mirror that has a provider of this version, with content of our own."""

    def __init__(self, folder: Path, version: str) -> None:
        packages = folder / "mirror" / REGISTRY / "hashicorp" / "aws"
        packages.mkdir(parents=True)
        platform = subprocess.run(["terraform", "version"], capture_output=True, text=True, check=True).stdout
        named = re.findall(r"^on (\w+)$", platform, re.M)[0]
        self.package = packages / f"terraform-provider-aws_{version}_{named}.zip"
        with zipfile.ZipFile(self.package, "w") as archive:
            archive.writestr(f"terraform-provider-aws_v{version}_x5", "not what was released\n")
        (folder / "rc").write_text(
            f'provider_installation {{\n  filesystem_mirror {{\n    path = "{folder}/mirror"\n  }}\n}}\n'
        )
        self._settings = {
            "TF_CLI_CONFIG_FILE": str(folder / "rc"),
            "CHECKPOINT_DISABLE": "1",
            "PATH": str(Path(_terraform()).parent),
        }
        shutil.copytree(TERRAFORM, folder / "terraform", ignore=shutil.ignore_patterns(".terraform", "*.tfstate*"))
        self.root = folder / "terraform" / "aws" / "root"

    def init(self) -> "subprocess.CompletedProcess[str]":
        """``terraform init`` as ``make deploy`` runs it, without a backend."""
        words = ["terraform", "init", "-backend=false", "-input=false", "-no-color"]
        return subprocess.run(words, cwd=self.root, env=self._settings, capture_output=True, text=True, check=False)


def _terraform() -> str:
    return shutil.which("terraform") or ""


@needs_terraform
def test_a_provider_of_other_content_is_refused(tmp_path: Path) -> None:
    """Terraform installs no package whose checksum is not in the lock file, and installs it once it is."""
    text = (ROOTS["aws"] / LOCK).read_text()
    mirror = Mirror(tmp_path, re.findall(r'version     = "([\d.]+)"', text)[0])
    refused = mirror.init()
    assert refused.returncode == 1
    assert "doesn't match any of the checksums" in " ".join(refused.stderr.split())
    known = hashlib.sha256(mirror.package.read_bytes()).hexdigest()
    (mirror.root / LOCK).write_text(ZIP_HASH.sub(f'    "zh:{known}",', text, count=1))
    assert mirror.init().returncode == 0
