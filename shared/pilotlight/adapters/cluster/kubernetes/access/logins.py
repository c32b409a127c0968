"""Logins of a person's kubeconfig: exec plugins, and by the official client OIDC with its refresh tokens.

The client is imported here alone, because its import costs more than the rest of a start. What a plugin or an issuer
says may hold secrets, and is not passed on.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from pilotlight.adapters.cluster.kubernetes.access.kubeconfig import READ_AGAIN_S, Table
from pilotlight.adapters.cluster.kubernetes.access.server_access import token_of
from pilotlight.errors import BadInput, Forbidden, Unavailable
from pilotlight.units import Seconds

T = TypeVar("T")

EARLY_S: Seconds = 60
"""A plugin is asked anew so long before its token ends."""
LOGIN_WAIT_S: Seconds = 30


def log_in(
    path: Path, context: str, user: Table, cluster: Table, environ: Mapping[str, str]
) -> tuple[dict[str, str], Seconds]:
    """Credential of a context's user, and how long it may be shown. An OIDC issuer is trusted by REQUESTS_CA_BUNDLE of
    ``environ`` where the kubeconfig names no authority. Raises ``BadInput``, ``Forbidden`` or ``Unavailable``."""
    if not user.get("exec"):
        return {"token": _oidc_token(path, context, environ.get("REQUESTS_CA_BUNDLE", ""))}, READ_AGAIN_S
    status = _plugin_answer(user["exec"], cluster, path, environ)
    shown = {
        "token": status.get("token", ""),
        "certificate": status.get("clientCertificateData", ""),
        "key": status.get("clientKeyData", ""),
    }
    return shown, _lasts(status.get("expirationTimestamp", ""))


def _plugin_answer(plugin: Table, cluster: Table, path: Path, environ: Mapping[str, str]) -> Mapping[str, str]:
    where = f"{path}: exec {plugin.get('command', '')}"
    try:
        answer = _within(lambda: _run(plugin, cluster, path.parent, environ), where)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        answer = {}
    if not answer or not all(isinstance(said, str) for said in answer.values()):
        raise Forbidden(f"{where}: gives no credential; run it by hand to see why")
    return answer


def _run(plugin: Table, cluster: Table, folder: Path, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The status that a plugin answers with, told what kubectl tells one. A person at a terminal may be asked by it."""
    version, asks = plugin["apiVersion"], sys.stdout.isatty()
    spec: dict[str, Any] = {"interactive": asks}
    if plugin.get("provideClusterInfo"):
        kept = {one["name"]: one["extension"] for one in cluster.get("extensions") or ()}
        config = kept.get("client.authentication.k8s.io/exec")
        spec["cluster"] = {**cluster} | ({} if config is None else {"config": config})
    own = {one["name"]: one["value"] for one in plugin.get("env") or ()}
    told = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    ran = subprocess.run(
        [plugin["command"], *(plugin.get("args") or ())],
        stdin=None if asks else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if asks else subprocess.DEVNULL,
        cwd=folder,
        env={**environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(told)},
        check=False,
    )
    answer = json.loads(ran.stdout) if ran.returncode == 0 else {}
    return dict(answer["status"]) if answer.get("apiVersion") == version else {}


def _lasts(ends: str) -> Seconds:
    """Seconds that a plugin's credential may be shown; one that names no end is asked for again when it is refused."""
    if not ends:
        return float("inf")
    try:
        return (datetime.fromisoformat(ends) - datetime.now(UTC)).total_seconds() - EARLY_S
    except (ValueError, TypeError):
        return 0


def _oidc_token(path: Path, context: str, authorities: str) -> str:
    """The identity token. One that ends is renewed at its issuer, and kept in the file with its refresh token."""
    try:
        from kubernetes.client import ApiException, Configuration
        from kubernetes.config.config_exception import ConfigException
        from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger
        from oauthlib.oauth2 import OAuth2Error
    except ImportError:
        raise BadInput(f"{path}: needs the package kubernetes; run pip install 'pilotlight[kubernetes]'") from None
    from requests.utils import DEFAULT_CA_BUNDLE_PATH
    from urllib3.exceptions import HTTPError

    where = f"{path}: the OIDC login"

    def renew() -> str:
        merged = KubeConfigMerger(str(path))
        user = merged.config["contexts"].get_with_name(context)["context"]["user"]
        provider = merged.config["users"].get_with_name(user)["user"]["auth-provider"]["config"].value
        # Where no authority is named the client would not verify its issuer; where no secret is, it would give up.
        added = {"idp-certificate-authority": authorities or DEFAULT_CA_BUNDLE_PATH, "client-secret": ""}
        added = {key: value for key, value in added.items() if key not in provider}
        provider.update(added)

        def keep() -> None:
            for key in added:
                del provider[key]
            merged.save_changes()

        configuration = Configuration()
        KubeConfigLoader(merged.config, context, config_persister=keep, config_base_path=None).load_and_set(
            configuration
        )
        return str(configuration.api_key.get("BearerToken", "")).removeprefix("Bearer ")

    try:
        token = _within(renew, where)
    except (OSError, HTTPError, ApiException) as error:
        below = getattr(error, "reason", None)
        name = type(below if isinstance(below, Exception) else error).__name__
        raise Unavailable(
            f"{where}: the issuer cannot be asked ({name}): check idp-issuer-url and the authority "
            "that it is trusted by, idp-certificate-authority"
        ) from None
    except (ConfigException, OAuth2Error, ValueError, LookupError, TypeError, AttributeError):
        token = ""
    ends = (said := token_of(token)) and said.ends
    if not token or (ends and ends <= datetime.now(UTC)):
        raise Forbidden(f"{where}: the issuer gives no new token; log in again as for kubectl")
    return token


def _within(ask: Callable[[], T], where: str) -> T:
    """Answer of ``ask`` within a time; its errors are raised here."""
    answers: list[T] = []
    failures: list[Exception] = []

    def run() -> None:
        try:
            answers.append(ask())
        except Exception as error:
            failures.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(LOGIN_WAIT_S)
    if failures:
        raise failures[0]
    if not answers:
        raise Unavailable(f"{where}: has not answered within {LOGIN_WAIT_S:g} s")
    return answers[0]
