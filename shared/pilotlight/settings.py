"""The environment, read once and here only.

=====================  ==================================================================================
PILOTLIGHT_POLICY      policy file: a path, ``s3://bucket/key`` or ``gs://bucket/object``
PILOTLIGHT_CATALOG     catalogue file: a path; the policy's ``prices.files`` come after it
PILOTLIGHT_CLUSTER     the one cluster this deployment serves; events of others are let pass
PILOTLIGHT_API         how its API server is reached: ``kubeconfig:PATH[#CONTEXT]``, ``kubeconfig-env:NAME`` (a variable
                       that holds one), ``in-cluster``, ``gke:projects/P/locations/L/clusters/C[?dns]``,
                       ``eks:REGION/NAME``; unset for the world
PILOTLIGHT_POOLS       who sells its nodes: ``civo:REGION/CLUSTER_ID``, ``gke:PROJECT/LOCATION/CLUSTER``,
                       ``asg:REGION/EKS_CLUSTER`` or ``asg:REGION`` (Auto Scaling groups by name), ``karpenter``
                       (NodeClaims), ``advisor`` (changes nothing); unset: the world
PILOTLIGHT_CLUSTERS    many clusters instead: JSON, or the path of such a file: name -> ``api``, ``world``, ``pools``,
                       ``mode``, ``policy``, ``token_env``, ``role_arn`` (at AWS). With PILOTLIGHT_CLUSTER: that one
PILOTLIGHT_WAIT_S      seconds that an event for every cluster waits for the slowest of them (45)
PILOTLIGHT_WATCH_S     seconds that a tick goes on looking for nodes on their way to homed pools (58)
PILOTLIGHT_WORLD       ``http://HOST:PORT`` of a running ``pilotlight world``, for the cluster, cloud and clock
PILOTLIGHT_STATE       ``memory:``, ``sqlite:PATH``, ``dynamodb:TABLE`` or ``firestore:PROJECT/DATABASE/COLLECTION``
PILOTLIGHT_ALERTS      where alerts on their way lie, if not in PILOTLIGHT_STATE; written in the same way
PILOTLIGHT_OUTBOX      ``memory:``, ``local:FOLDER``, ``pubsub:PROJECT/PREFIX`` or ``sns:ARN`` (as topics' ARNs begin)
PILOTLIGHT_BILLS       ``civo:REGION`` or ``focus:URI`` (a path, ``s3://`` or ``gs://``, with ``*``); unset: no bill
PILOTLIGHT_TELEMETRY   ``http://HOST:PORT`` of a Prometheus with dcgm-exporter's series; unset: nothing rests as idle
PILOTLIGHT_TOKENS      who may post to ``serve``: JSON, or the path of such a file: name -> ``token``, ``roles``, ``by``
PILOTLIGHT_TOKEN       the token that ``pilotlight send`` shows
PILOTLIGHT_MODE        ``observe``, ``advise``, ``scale-up`` or ``act``, where a pool names none
PILOTLIGHT_HOME        folder of the default state and outbox (``$XDG_STATE_HOME/pilotlight``, which is
                       ``~/.local/state/pilotlight`` where that is unset; ``.pilotlight`` where there is no home)
=====================  ==================================================================================

Names that others gave, and that are read as they mean them:

==============================  =========================================================================
CIVO_TOKEN                      the token for Civo's API; ``token_env`` names another for a cluster of many
CIVO_API_URL                    another address of Civo's API
CLOUDSDK_API_ENDPOINT_OVERRIDES_CONTAINER  another address of GKE's API; over plain HTTP no token is shown
CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE  the same of Compute Engine's
CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDRESOURCEMANAGER  the same of Resource Manager's
GOOGLE_APPLICATION_CREDENTIALS  a credentials file for Google Cloud; unset: the metadata server's, then gcloud's
FIRESTORE_EMULATOR_HOST         host:port of an emulator of Firestore instead of the service
PUBSUB_EMULATOR_HOST            host:port of an emulator of Pub/Sub instead of the service
BIGQUERY_EMULATOR_HOST          ``http://HOST:PORT`` of an emulator of BigQuery instead of the service
STORAGE_EMULATOR_HOST           ``http://HOST:PORT`` of an emulator of Cloud Storage instead of the service
AWS_ENDPOINT_URL_DYNAMODB       ``http://HOST:PORT`` of a DynamoDB on this machine, as moto or DynamoDB local
AWS_ENDPOINT_URL                the same for all of AWS; ``_AUTO_SCALING``, ``_EC2``, ``_STS``, ``_SNS`` and
                                ``_SECRETS_MANAGER`` for one of them
AWS_REGION                      the region of a table, and of a secret without an ARN; Lambda sets it
AWS_DEFAULT_REGION              the same where that is unset
AWS_ROLE_ARN                    the role that acts on AWS, by AWS_WEB_IDENTITY_TOKEN_FILE, or without it by who this
                                function is at Google. Else as boto3 finds a credential: AWS_ACCESS_KEY_ID, a
                                container's, a profile, an instance's. In functions K_SERVICE, in pods
                                KUBERNETES_SERVICE_HOST says that Google may know who a cluster's ``role_arn`` is for
AWS_ROLE_SESSION_NAME           the session of a role that is taken; unset: ``pilotlight``
OTEL_EXPORTER_OTLP_ENDPOINT     ``http://HOST:4318``: billing_tick pushes its figures there as JSON; unset: nowhere
OTEL_EXPORTER_OTLP_HEADERS      headers that go with them: ``key=value,key=value``
HTTPS_PROXY                     the proxy of calls to AWS; by requests that of ``send --url``, ``trace --prometheus``,
                                ``prices`` (HTTP_PROXY too). This machine needs none
NO_PROXY                        hosts that are reached past it, and ``.domains``, by commas
REQUESTS_CA_BUNDLE              a file of the authorities that those commands trust, instead of requests' own
XDG_STATE_HOME                  where state of a person's programs lies
==============================  =========================================================================

A variable that holds a secret may name one of AWS Secrets Manager instead: ``secretsmanager:ARN``, or its name.

What a cluster of many leaves out is the deployment's. With none of them set this is the embedded default: the world on
the wall clock, which acts. As soon as a cluster is named the mode is ``advise`` until it is set.
"""

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from stat import S_ISCHR
from string import ascii_letters, digits
from typing import TYPE_CHECKING, get_args

import msgspec

from pilotlight import typed_json
from pilotlight.errors import BadInput
from pilotlight.facts.modes import Mode
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.adapters.object_store import Objects

if TYPE_CHECKING:
    from pilotlight.facts.limits.routes import Caller

MAX_BODY = 1_000_000
"""Bytes of the largest request body that is parsed."""

SHORTEST_TOKEN = 16
TOKEN_LETTERS = frozenset(ascii_letters + digits + "-_")
"""They stand in a header and in a path as they are."""

OLD_HOME = Path(".pilotlight")
"""Where the default state lay before there was one place for each person."""

SECRETS_MANAGER = "secretsmanager:"
"""How a variable's value begins whose value is a secret of AWS Secrets Manager: its ARN or name follows."""

EMBEDDED_CLUSTER = "local"
EVERY_CLUSTER = "*"
"""What an event says that is for all clusters; one that names none is too."""
TOKEN_ENV = "CIVO_TOKEN"
WAIT_S: Seconds = 45.0
"""Below the minute after which schedulers and functions give a request up, and tick again."""
WATCH_S: Seconds = 58.0  # Until the next tick, where one comes each minute.
MODES: tuple[Mode, ...] = get_args(Mode)


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of many clusters. ``token_env`` names the variable with its pools' token, ``role_arn`` its role at AWS."""

    api: str = ""
    world: str = ""
    pools: str = ""
    mode: Mode | None = None
    policy: str = ""
    token_env: str = ""
    role_arn: str = ""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the environment, as the table above has it."""

    policy: str = ""  # Address of the policy file; empty: the package's own.
    catalog: str = ""  # Path of the catalogue; empty: the package's own.
    cluster: str = ""  # Name of the one cluster; empty in the embedded default and where there are many.
    api: str = ""  # Address of its API server; empty: the world.
    pools: str = ""  # Address of who sells its nodes; empty: the world.
    token_env: str = TOKEN_ENV  # Variable with the token for its pools.
    role_arn: str = ""  # Role of its own account at AWS; empty: the deployment's.
    clusters: Mapping[str, ClusterSettings] = {}  # Many clusters instead, by name.
    wait_s: Seconds = WAIT_S  # Seconds that an event for every cluster waits for the slowest.
    watch_s: Seconds = WATCH_S  # Seconds that a tick goes on looking for nodes on their way to homed pools.
    world: str = ""  # Address of a world outside this process; empty: none.
    state: str = "sqlite:.pilotlight/state.db"  # Address of the state.
    alerts: str = ""  # Address of alerts on their way; empty: the state.
    outbox: str = "local:.pilotlight/outbox"  # Address of the outbox.
    bills: str = ""  # Address of the bill; empty: none.
    telemetry: str = ""  # Address of the Prometheus with GPUs' series; empty: none.
    beside_others: bool = False  # It is one of several clusters.
    mode: Mode = "act"  # Mode of pools that name none.
    max_body: int = MAX_BODY  # Bytes of the largest request body that is parsed.
    callers: "Mapping[str, Caller]" = {}  # Callers that may post, by name; none: this machine's programs.
    token: str = ""  # Token that ``pilotlight send`` shows.
    otlp: str = ""  # Address that figures are pushed to; empty: none is.
    otlp_headers: str = ""  # Headers of these pushes, as "key=value,key=value".
    environ: Mapping[str, str] = {}  # The environment, for secrets that others name.

    @staticmethod
    def from_environ(environ: Mapping[str, str]) -> "Settings":
        """The settings in an environment. Raises ``BadInput``, which names the variable."""
        cluster = environ.get("PILOTLIGHT_CLUSTER", "")
        clusters = _clusters(environ.get("PILOTLIGHT_CLUSTERS", ""))
        real = bool(cluster or clusters or environ.get("PILOTLIGHT_API"))
        home = _home(environ)
        settings = Settings(
            policy=environ.get("PILOTLIGHT_POLICY", ""),
            catalog=environ.get("PILOTLIGHT_CATALOG", ""),
            cluster="" if clusters else cluster,
            api=environ.get("PILOTLIGHT_API", ""),
            pools=environ.get("PILOTLIGHT_POOLS", ""),
            clusters=clusters,
            wait_s=_seconds(environ.get("PILOTLIGHT_WAIT_S") or f"{WAIT_S}", "PILOTLIGHT_WAIT_S"),
            watch_s=_seconds(environ.get("PILOTLIGHT_WATCH_S") or f"{WATCH_S}", "PILOTLIGHT_WATCH_S"),
            world=environ.get("PILOTLIGHT_WORLD", ""),
            state=environ.get("PILOTLIGHT_STATE") or f"sqlite:{home / 'state.db'}",
            alerts=environ.get("PILOTLIGHT_ALERTS", ""),
            outbox=environ.get("PILOTLIGHT_OUTBOX") or f"local:{home / 'outbox'}",
            bills=environ.get("PILOTLIGHT_BILLS", ""),
            telemetry=environ.get("PILOTLIGHT_TELEMETRY", ""),
            mode=_mode(environ.get("PILOTLIGHT_MODE") or ("advise" if real else "act")),
            callers=_callers(environ.get("PILOTLIGHT_TOKENS", "")),
            token=environ.get("PILOTLIGHT_TOKEN", ""),
            otlp=environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").rstrip("/"),
            otlp_headers=environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""),
            environ=environ,
        )
        return settings.for_cluster(cluster) if clusters and cluster else settings

    @property
    def cluster_name(self) -> str:
        """Name of the one cluster in keys and messages. Raises ``BadInput`` where there are many."""
        if self.clusters:
            raise BadInput(f"there are many clusters: set PILOTLIGHT_CLUSTER to one of {', '.join(self.clusters)}")
        return self.cluster or EMBEDDED_CLUSTER

    @property
    def link_key(self) -> str:
        """Key that signs alerts' links; empty where nothing signs them. Of several, the others are of links that
        were sent before the key changed."""
        return next((caller.token for caller in self.callers.values() if caller.by == "link"), "")

    def for_cluster(self, cluster: str) -> "Settings":
        """The settings of one of many clusters. Raises ``BadInput`` for another."""
        if cluster not in self.clusters:
            raise BadInput(f"PILOTLIGHT_CLUSTER is {cluster!r}: PILOTLIGHT_CLUSTERS has {', '.join(self.clusters)}")
        own = self.clusters[cluster]
        return msgspec.structs.replace(
            self,
            cluster=cluster,
            clusters={},
            beside_others=len(self.clusters) > 1,
            api=own.api or self.api,
            world=own.world or self.world,
            pools=own.pools or self.pools,
            mode=own.mode or self.mode,
            policy=own.policy or self.policy,
            token_env=own.token_env or self.token_env,
            role_arn=own.role_arn,
        )

    def secret(self, name: str) -> str:
        """A value of the environment that the policy or the settings name. Raises ``BadInput`` where it is not set."""
        if not self.environ.get(name):
            raise BadInput(f"the environment variable {name or '(url_env)'} is needed; set it")
        return self.environ[name]


def deployed_settings() -> Settings:
    """The settings of this process's environment. Raises ``BadInput``."""
    return Settings.from_environ(_opened(os.environ))


def _opened(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment with what its variables only name, looked up when it is asked for."""
    if not any(value.startswith(SECRETS_MANAGER) for value in environ.values()):
        return environ
    from pilotlight.adapters.secrets import WithSecrets

    return WithSecrets(environ, SECRETS_MANAGER)


def environment() -> MutableMapping[str, str]:
    """The environment itself, for a process that begins another."""
    return os.environ


def share(name: str, value: str) -> None:
    """Set a variable for this process and for those that it begins."""
    os.environ[name] = value


def _home(environ: Mapping[str, str]) -> Path:
    """The folder of the default state and outbox: one for each person, whatever folder a command runs in."""
    if own := environ.get("PILOTLIGHT_HOME"):
        return Path(own)
    if (states := Path(environ.get("XDG_STATE_HOME", ""))).is_absolute():
        return states / "pilotlight"
    return Path(environ["HOME"]) / ".local/state/pilotlight" if environ.get("HOME") else OLD_HOME


def _mode(text: str) -> Mode:
    if (found := next((mode for mode in MODES if mode == text), None)) is not None:
        return found
    raise BadInput(f"PILOTLIGHT_MODE is {text!r}: use one of {', '.join(MODES)}")


def _seconds(text: str, name: str) -> Seconds:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 3600:
        raise BadInput(f"{name} is {text!r}: use seconds above 0, up to 3600")
    return seconds


def _clusters(text: str) -> dict[str, ClusterSettings]:
    """The map of clusters in JSON, or in the file that ``text`` names. A name may not hold what keys are made with."""
    if not text:
        return {}
    keys = ", ".join(ClusterSettings.__struct_fields__)
    way = f'write {{"NAME": {{"api": "kubeconfig:PATH"}}}} with {keys}, or a file of it'
    body = text.encode() if text.lstrip()[:1] in ("{", "[") else read(text)
    try:
        found = typed_json.decode(body, dict[str, ClusterSettings])
    except (msgspec.DecodeError, UnicodeError) as e:
        raise BadInput(f"PILOTLIGHT_CLUSTERS: {str(e).replace('$[...]', 'NAME')}; {way}") from None
    if wrong := [name for name in found if name in ("", EVERY_CLUSTER) or "/" in name] or [""] * (not found):
        raise BadInput(f"PILOTLIGHT_CLUSTERS: {repr(wrong[0]) if found else 'nothing'} is no name; {way}")
    return found


def _callers(text: str) -> "dict[str, Caller]":
    """Callers that may post, in JSON or in the file that ``text`` names. Errors name the entry, never its token."""
    if not text:
        return {}
    from pilotlight.facts.limits.routes import Caller

    try:
        body = text.encode() if text.lstrip().startswith("{") else read(text)
        found = typed_json.decode(body, dict[str, Caller])
    except BadInput:  # Its line shows the text, which may be a token.
        raise BadInput("PILOTLIGHT_TOKENS: no JSON, and no file to read; write name -> token, roles, by") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadInput(f"PILOTLIGHT_TOKENS: {error}; write name -> token, roles, by") from None
    if not found:
        raise BadInput("PILOTLIGHT_TOKENS is empty")
    for name, caller in found.items():
        if len(caller.token) < SHORTEST_TOKEN or not TOKEN_LETTERS.issuperset(caller.token):
            odd = f"is too short or odd: use {SHORTEST_TOKEN} or more of A-Z, a-z, 0-9, - and _"
            raise BadInput(f"PILOTLIGHT_TOKENS: the token of {name!r} {odd}, as `openssl rand -hex 32` writes")
        if not name or not TOKEN_LETTERS.issuperset(name):
            raise BadInput(f"PILOTLIGHT_TOKENS: {name!r} is no name: use A-Z, a-z, 0-9, - and _")
        if caller.by == "link" and caller.roles != ("acknowledge",):
            raise BadInput(f"PILOTLIGHT_TOKENS: {name!r} signs links, which only acknowledge: say its roles so")
    if len({caller.token for caller in found.values()}) < len(found):
        raise BadInput("PILOTLIGHT_TOKENS: two names have the same token; give each its own")
    return found


def default_file(name: str) -> Path:
    """A file that comes with the package: beside it in a bundle or wheel, at its usual place in a checkout."""
    package = Path(__file__).parent
    packed = package / "_defaults" / name
    return packed if packed.exists() else package.parents[1] / name


def read(where: str) -> bytes:
    """The bytes at a path, ``s3://`` or ``gs://``. Raises ``BadInput``, or ``Unavailable`` when later may work."""
    if "://" in where:
        return objects(os.environ).read(where)
    try:
        with open(where, "rb") as opened:
            if S_ISCHR(os.fstat(opened.fileno()).st_mode) and not opened.isatty() and opened.read(1):
                raise BadInput(f"{where}: has no end; name a file that can be read")
            return opened.read()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{where}: {reason}; name a file that can be read") from None


def objects(environ: Mapping[str, str]) -> "Objects":
    """Objects of the clouds as an environment reaches them."""
    from pilotlight.adapters.object_store import Objects

    return Objects(
        gcs=environ.get("STORAGE_EMULATOR_HOST", ""),
        credentials_file=bool(environ.get("GOOGLE_APPLICATION_CREDENTIALS")),
        environ=environ,
    )


def address_beside(where: str, name: str) -> str:
    """The address of a file in the same folder as another, be it a path or ``scheme://``."""
    if "://" in where:
        return f"{where.rpartition('/')[0]}/{name}"
    return str(Path(where).parent / name)
