"""The environment, read once and here only.

=====================  ==================================================================================
PILOTLIGHT_POLICY      policy file: a path, ``s3://bucket/key`` or ``gs://bucket/object``
PILOTLIGHT_CATALOG     catalogue file: a path; the policy's ``prices.files`` come after it
PILOTLIGHT_CLUSTER     the one cluster this deployment serves; events of others are let pass
PILOTLIGHT_WORLD       ``http://HOST:PORT`` of a running ``pilotlight world``, for the cluster, cloud and clock
PILOTLIGHT_STATE       ``memory:``, ``sqlite:PATH``, ``dynamodb:TABLE`` or ``firestore:PROJECT/DATABASE/COLLECTION``
PILOTLIGHT_OUTBOX      ``memory:`` or ``local:FOLDER``
PILOTLIGHT_MODE        ``observe``, ``advise``, ``scale-up`` or ``act``, where a pool names none
PILOTLIGHT_HOME        folder of the default state and outbox
=====================  ==================================================================================

With none of them set this is the embedded default: the world on the wall clock, which acts. As soon as a cluster is
named the mode is ``advise`` until it is set.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

import msgspec

from pilotlight.errors import BadInput, Unavailable
from pilotlight.facts.capacity import Mode

MAX_BODY = 1_000_000
"""Bytes of the largest request body that is parsed."""

EMBEDDED_CLUSTER = "local"
MODES: tuple[Mode, ...] = get_args(Mode)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the environment says. ``cluster`` is empty in the embedded default; an empty ``policy`` or ``catalog``
    is the one that comes with the package. ``environ`` holds the secrets that the policy names by ``url_env``."""

    policy: str = ""
    catalog: str = ""
    cluster: str = ""
    world: str = ""
    state: str = "sqlite:.pilotlight/state.db"
    outbox: str = "local:.pilotlight/outbox"
    mode: Mode = "act"
    max_body: int = MAX_BODY
    environ: Mapping[str, str] = {}

    @staticmethod
    def of(environ: Mapping[str, str]) -> "Settings":
        """The settings in an environment. Raises ``BadInput``, which names the variable."""
        cluster = environ.get("PILOTLIGHT_CLUSTER", "")
        home = Path(environ.get("PILOTLIGHT_HOME") or ".pilotlight")
        return Settings(
            policy=environ.get("PILOTLIGHT_POLICY", ""),
            catalog=environ.get("PILOTLIGHT_CATALOG", ""),
            cluster=cluster,
            world=environ.get("PILOTLIGHT_WORLD", ""),
            state=environ.get("PILOTLIGHT_STATE") or f"sqlite:{home / 'state.db'}",
            outbox=environ.get("PILOTLIGHT_OUTBOX") or f"local:{home / 'outbox'}",
            mode=_mode(environ.get("PILOTLIGHT_MODE") or ("advise" if cluster else "act")),
            environ=environ,
        )

    @property
    def cluster_name(self) -> str:
        """What the cluster is called in keys and messages."""
        return self.cluster or EMBEDDED_CLUSTER

    def secret(self, name: str) -> str:
        """A value of the environment that the policy names. Raises ``BadInput`` where it is not set."""
        if not self.environ.get(name):
            raise BadInput(f"the policy's alerts need the environment variable {name or '(url_env)'}; set it")
        return self.environ[name]


def _mode(text: str) -> Mode:
    for mode in MODES:
        if mode == text:
            return mode
    raise BadInput(f"PILOTLIGHT_MODE is {text!r}: use one of {', '.join(MODES)}")


def default_file(name: str) -> Path:
    """A file that comes with the package: beside it in a bundle or wheel, at its usual place in a checkout."""
    package = Path(__file__).parent
    packed = package / "_defaults" / name
    return packed if packed.exists() else package.parents[1] / name


def read(where: str) -> bytes:
    """The bytes at a path, ``s3://`` or ``gs://``. Raises ``BadInput``, or ``Unavailable`` when later may work."""
    parts = urlsplit(where)
    match parts.scheme:
        case "s3":
            return _s3(parts.netloc, parts.path.lstrip("/"), where)
        case "gs":
            return _gs(parts.netloc, parts.path.lstrip("/"), where)
    try:
        return Path(where).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{where}: {reason}; name a file that can be read") from None


def _s3(bucket: str, key: str, where: str) -> bytes:
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        raise BadInput(f"{where}: needs the package boto3; install pilotlight[aws]") from None
    try:
        body: bytes = boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    except ClientError as error:
        raise BadInput(f"{where}: {error.response['Error']['Code']}; check the address and its rights") from None
    except BotoCoreError as error:
        raise Unavailable(f"{where}: {error}") from None
    return body


def _gs(bucket: str, name: str, where: str) -> bytes:
    try:
        from google.api_core.exceptions import ClientError, GoogleAPIError
        from google.auth.exceptions import GoogleAuthError
        from google.cloud import storage
    except ImportError:
        raise BadInput(f"{where}: needs the package google-cloud-storage; install it beside pilotlight") from None
    try:
        body: bytes = storage.Client().bucket(bucket).blob(name).download_as_bytes()
    except ClientError as error:
        raise BadInput(f"{where}: {error.message}; check the address and its rights") from None
    except (GoogleAPIError, GoogleAuthError) as error:
        raise Unavailable(f"{where}: {error}") from None
    return body
