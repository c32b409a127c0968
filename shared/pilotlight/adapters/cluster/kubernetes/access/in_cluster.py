"""The API server of the cluster a pod runs in, as its service account is mounted."""

import time
from collections.abc import Mapping
from pathlib import Path

from pilotlight.adapters.cluster.kubernetes.access.server_access import Access
from pilotlight.errors import BadInput
from pilotlight.units import Seconds

MOUNTED = Path("/var/run/secrets/kubernetes.io/serviceaccount")
READ_AGAIN_S: Seconds = 60
"""The kubelet writes a new token long before the old one ends."""


class InCluster:
    """Token and CA from files that are read again. Raises ``BadInput`` outside of a pod."""

    def __init__(self, environ: Mapping[str, str], folder: Path = MOUNTED) -> None:
        host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host:
            raise BadInput(
                "PILOTLIGHT_API is in-cluster and KUBERNETES_SERVICE_HOST is not set: this is no pod; name a --context"
            )
        self._server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        self._folder = folder
        self._kept: tuple[float, Access] | None = None

    def access(self, *, anew: bool = False) -> Access:
        now = time.monotonic()
        if anew or self._kept is None or now >= self._kept[0]:
            self._kept = now + READ_AGAIN_S, self._read()
        return self._kept[1]

    def _read(self) -> Access:
        try:
            token, ca = ((self._folder / name).read_text().strip() for name in ("token", "ca.crt"))
        except OSError as error:
            raise BadInput(f"{error.filename}: {error.strerror}; mount the service account's token") from None
        return Access(server=self._server, ca=ca, token=token)
