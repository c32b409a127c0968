"""Kubeconfigs for tests."""

import base64
from typing import Any


def config(server: str, user: dict[str, Any], **cluster: Any) -> dict[str, Any]:
    """A kubeconfig of one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
    }


def b64(data: bytes) -> str:
    """As a kubeconfig holds it."""
    return base64.b64encode(data).decode()
