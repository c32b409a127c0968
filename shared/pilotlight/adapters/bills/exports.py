"""The files of a billing export on this machine: a path or pattern as it is, ``s3://`` and ``gs://`` as copies.

A file that is there twice, as an export that was written again beside itself, is one file.
"""

import glob
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from pilotlight.errors import BadInput, Unavailable

MOST_FILES = 1000
GS = "https://storage.googleapis.com"


@contextmanager
def local_files(uri: str) -> Iterator[list[Path]]:
    """The files that an address names; ``*`` stands for any text. Copies are gone after.

    An address that ends in ``anifest.json`` names the files that are listed there. Raises ``BadInput`` where there are
    none, ``Unavailable`` when later may work.
    """
    with tempfile.TemporaryDirectory(prefix="pilotlight-bill-") as folder:
        files = list(_fetched(uri, Path(folder)))
        if len(files) == 1 and files[0].name.endswith("anifest.json"):
            files = [file for name in _listed(files[0]) for file in _fetched(name, Path(folder))]
        if not files:
            raise BadInput(f"PILOTLIGHT_BILLS: no file at {uri}; name the export's data files")
        yield _once(files)


def _listed(manifest: Path) -> list[str]:
    """The data files of a manifest: AWS Data Exports writes it after all of them."""
    try:
        found = json.loads(manifest.read_bytes())
    except (ValueError, OSError):
        raise BadInput(f"{manifest.name}: not JSON") from None
    names = found.get("dataFiles") if isinstance(found, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadInput(f"{manifest.name}: has no list dataFiles")
    return names[:MOST_FILES]


def _once(files: list[Path]) -> list[Path]:
    seen: dict[bytes, Path] = {}
    for file in files:
        with file.open("rb") as content:
            digest = blake2b(digest_size=16)
            while part := content.read(1 << 20):
                digest.update(part)
        seen.setdefault(digest.digest(), file)
    return list(seen.values())


def _fetched(uri: str, folder: Path) -> Iterator[Path]:
    parts = urlsplit(uri)
    match parts.scheme:
        case "s3":
            yield from _of_s3(parts.netloc, parts.path.lstrip("/"), folder)
        case "gs":
            yield from _of_gs(parts.netloc, parts.path.lstrip("/"), folder)
        case _:
            yield from (Path(name) for name in sorted(glob.glob(uri, recursive=True)) if Path(name).is_file())


def _place(folder: Path, key: str) -> Path:
    """Where a copy goes: its own name, for what it ends in says how it is packed."""
    return Path(tempfile.mkdtemp(dir=folder)) / key.rpartition("/")[2]


def _prefix(pattern: str) -> str:
    return pattern.partition("*")[0]


def _of_s3(bucket: str, pattern: str, folder: Path) -> Iterator[Path]:
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        raise BadInput(f"s3://{bucket}: needs the package boto3; install pilotlight[aws]") from None
    client = boto3.client("s3")
    try:
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=_prefix(pattern))
        keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
        for key in [key for key in keys if fnmatchcase(key, pattern)][:MOST_FILES]:
            place = _place(folder, key)
            client.download_file(bucket, key, str(place))
            yield place
    except ClientError as error:
        raise BadInput(f"s3://{bucket}: {error.response['Error']['Code']}; check the address and its rights") from None
    except BotoCoreError as error:
        raise Unavailable(f"s3://{bucket}: {error}") from None


def _of_gs(bucket: str, pattern: str, folder: Path) -> Iterator[Path]:
    import urllib3

    from pilotlight.adapters.google_token import GoogleToken

    http = urllib3.PoolManager(timeout=60)
    emulator = os.environ.get("STORAGE_EMULATOR_HOST", "").rstrip("/")
    file = bool(os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"))
    headers = {} if emulator else GoogleToken(file=file).header()
    base = f"{emulator or GS}/storage/v1/b/{bucket}/o"

    def ask(url: str) -> Any:
        try:
            answer = http.request("GET", url, headers=headers, preload_content=False)
        except urllib3.exceptions.HTTPError as error:
            raise Unavailable(f"gs://{bucket}: {type(error).__name__}") from None
        if answer.status >= 500 or answer.status == 429:
            raise Unavailable(f"gs://{bucket}: Cloud Storage answers {answer.status}")
        if answer.status != 200:
            raise BadInput(f"gs://{bucket}: Cloud Storage answers {answer.status}; check the address and its rights")
        return answer

    token, names = "", list[str]()
    while True:
        page = json.loads(ask(f"{base}?prefix={quote(_prefix(pattern), safe='')}&pageToken={quote(token)}").read())
        names += [item["name"] for item in page.get("items", ()) if fnmatchcase(item["name"], pattern)]
        token = page.get("nextPageToken", "")
        if not token or len(names) >= MOST_FILES:
            break
    for name in names[:MOST_FILES]:
        place = _place(folder, name)
        with place.open("wb") as copy:
            shutil.copyfileobj(ask(f"{base}/{quote(name, safe='')}?alt=media"), copy)
        yield place
