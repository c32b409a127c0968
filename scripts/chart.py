"""The Helm chart's templates that stand in infra/kubernetes too, written from there; and its rules and dashboards.

Manifests are the one source: a template is a manifest whose names, images and sizes are values, and which may be left
out. ``python scripts/chart.py`` writes them anew. What only a chart has (Secret, values, notes) is written by hand.
"""

import re
from pathlib import Path
from typing import NamedTuple

from pilotlight.codec.kubernetes.nodes.gpu_models import POOL_LABELS

ROOT = Path(__file__).resolve().parents[1]
MANIFESTS, CHART = ROOT / "infra" / "kubernetes", ROOT / "infra" / "helm" / "pilotlight"
COPIES = {
    **{path: f"dashboards/{path.name}" for path in sorted((ROOT / "infra" / "grafana").glob("*.json"))},
    ROOT / "infra" / "prometheus" / "rules.yaml": "rules.yaml",
}
"""Files that the chart holds as they are, and where among its own."""


class Part(NamedTuple):
    """A template: the manifest, its documents (None for all), when it is there, and what else is a value in it."""

    source: str
    of: slice = slice(None)
    when: str = ""
    changes: tuple[tuple[str, str], ...] = ()


EVERYWHERE = (
    ("\n  namespace: pilotlight\n", "\n  namespace: {{ .Release.Namespace }}\n"),
    ("\n  labels: {app.kubernetes.io/name: pilotlight}\n", '\n  labels: {{ include "pilotlight.labels" . }}\n'),
    ("image: registry.example.com/pilotlight:0.13.0", 'image: {{ include "pilotlight.image" . | quote }}'),
    ("imagePullPolicy: Always", "imagePullPolicy: {{ .Values.image.pullPolicy }}"),
    (
        "\n          restartPolicy: Never\n",
        "\n          restartPolicy: Never\n"
        '          {{- with include "pilotlight.pod" . }}{{ . | nindent 10 }}{{ end }}\n',
    ),
)
"""Texts that are a value in every manifest that has them."""
USER = re.compile(r"((?:^ *(?:runAsUser|runAsGroup|fsGroup): 65532\n)+)", re.M)
"""Who a pod runs as: OpenShift's own rule chooses from the namespace's range, and refuses any other."""

CLASS = "\n  {{- with .Values.storage.className }}\n  storageClassName: {{ . | quote }}\n  {{- end }}"
KEPT = "\n  # It stays when the release goes.\n  annotations: {helm.sh/resource-policy: keep}"

LABELLED = '{{ include "pilotlight.poolLabels" . }}'

HOME = (
    ("resources: {requests: {storage: 1Gi}}", "resources: {requests: {storage: {{ .Values.storage.state }}}}" + CLASS),
    (
        "resources: {requests: {storage: 256Mi}}",
        "resources: {requests: {storage: {{ .Values.storage.outbox }}}}" + CLASS,
    ),
    ("\n  name: pilotlight-state\n", "\n  name: pilotlight-state" + KEPT + "\n"),
    ("\n  name: pilotlight-outbox\n", "\n  name: pilotlight-outbox" + KEPT + "\n"),
    (
        "\n      labels: {app.kubernetes.io/name: pilotlight, app.kubernetes.io/component: home}\n    spec:\n",
        "\n      labels: {app.kubernetes.io/name: pilotlight, app.kubernetes.io/component: home}\n"
        "      annotations:\n"
        "        # A changed policy or setting is a new pod.\n"
        '        checksum/config: {{ include (print $.Template.BasePath "/config.yaml") . | sha256sum }}\n'
        "        {{- range $name, $value := .Values.pod.annotations }}\n"
        "        {{ $name }}: {{ $value | quote }}\n"
        "        {{- end }}\n"
        "    spec:\n"
        '      {{- with include "pilotlight.pod" . }}{{ . | nindent 6 }}{{ end }}\n'
        "      {{- with .Values.pod.affinity }}\n      affinity: {{ toJson . }}\n      {{- end }}\n",
    ),
    ('--workers, "2"]', "--workers, {{ .Values.workers | quote }}]"),
    (
        "- secretRef: {name: pilotlight}\n",
        '- secretRef: {name: {{ include "pilotlight.secret" . }}}\n'
        "            {{- range .Values.secret.more }}\n"
        "            - secretRef: {name: {{ . }}}\n"
        "            {{- end }}\n",
    ),
    (
        'resources:\n            requests: {cpu: 50m, memory: 256Mi}\n            limits: {cpu: "1", memory: 512Mi}\n',
        "resources: {{ toJson .Values.resources }}\n",
    ),
)

PARTS = {
    "account": Part(
        "namespace.yaml",
        of=slice(1, None),
        changes=(
            (
                "\nautomountServiceAccountToken",
                "\n  {{- with .Values.serviceAccount.annotations }}\n  annotations: {{ toJson . }}\n  {{- end }}"
                "\nautomountServiceAccountToken",
            ),
        ),
    ),
    "observe": Part("rbac/observe.yaml"),
    "act": Part(
        "rbac/act.yaml",
        when='include "pilotlight.acts" .',
        changes=(
            (
                '  - apiGroups: [""]\n    resources: [pods/eviction]\n    verbs: [create]\n',
                "  {{- if not .Values.evictIn }}\n"
                '  - apiGroups: [""]\n    resources: [pods/eviction]\n    verbs: [create]\n'
                "  {{- end }}\n",
            ),
        ),
    ),
    "kueue": Part("rbac/kueue.yaml", when=".Values.kueue.enabled"),
    "reclaim": Part("rbac/reclaim.yaml", when=".Values.reclaim.enabled"),
    "karpenter": Part("rbac/karpenter.yaml", when=".Values.karpenter.enabled"),
    "claims": Part("rbac/karpenter-claims.yaml", when=".Values.karpenter.claims"),
    "gke-queue": Part("rbac/gke-queue.yaml", when=".Values.gke.queue"),
    "nodes": Part(
        "admission/nodes.yaml",
        when='include "pilotlight.acts" .',
        changes=(("\"['t4']\"", '{{ include "pilotlight.poolList" . | quote }}'),),
    ),
    "tolerations": Part("admission/tolerations.yaml", when='include "pilotlight.acts" .'),
    "evictions": Part(
        "admission/evictions.yaml",
        when='include "pilotlight.acts" .',
        changes=tuple(
            (f"{{key: {key}, operator: NotIn, values: [t4]}}", f"{{key: {key}, operator: NotIn, values: {LABELLED}}}")
            for key in POOL_LABELS
        ),
    ),
    "homes": Part("admission/homes.yaml", when='include "pilotlight.acts" .'),
    "home": Part("home/deployment.yaml", changes=HOME),
    "network": Part(
        "home/network.yaml",
        when=".Values.networkPolicy.enabled",
        changes=(
            (
                'pilotlight.dev/event-source: "true"}}\n',
                'pilotlight.dev/event-source: "true"}}\n'
                "        {{- range .Values.networkPolicy.namespaces }}\n"
                "        - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ . }}}}\n"
                "        {{- end }}\n",
            ),
            (
                "    # The jobs of cronjobs.yaml reach the home.\n",
                "    {{- with .Values.networkPolicy.egress }}\n"
                "    {{- toYaml . | nindent 4 }}\n"
                "    {{- end }}\n"
                "    {{- if .Values.telemetry }}\n"
                "    # The Prometheus: its port, and its Service's namespace, whose pods may listen on another.\n"
                '    - ports: [{protocol: TCP, port: {{ include "pilotlight.telemetryPort" $ }}}]\n'
                '    {{- with include "pilotlight.telemetryNamespace" $ }}\n'
                "    - to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ . | quote }}}}}]\n"
                "    {{- end }}\n"
                "    {{- end }}\n"
                "    # The jobs of cronjobs.yaml reach the home.\n",
            ),
        ),
    ),
    "cronjobs": Part(
        "home/cronjobs.yaml",
        changes=(
            (
                "{name: pilotlight, key: PILOTLIGHT_TOKEN}",
                '{name: {{ include "pilotlight.secret" . }}, key: PILOTLIGHT_TOKEN}',
            ),
        ),
    ),
    "watchman": Part("placement/watchman.yaml", when='include "pilotlight.placement" .'),
    "handback-lease": Part(
        "handback/watchman.yaml",
        of=slice(0, 1),
        when='and (include "pilotlight.handback" .) (not (include "pilotlight.placement" .))',
    ),
    "handback": Part(
        "handback/watchman.yaml",
        of=slice(1, None),
        when='include "pilotlight.handback" .',
        changes=(
            (
                "\n  annotations:\n"
                "    eks.amazonaws.com/role-arn: arn:aws:iam::123456789012:role/pilotlight-handback\n",
                "\n  {{- with .Values.handback.serviceAccount.annotations }}\n"
                "  annotations: {{ toJson . }}\n  {{- end }}\n",
            ),
            ("--if-silent, 10m]", "--if-silent, {{ .Values.handback.ifSilent | quote }}]"),
        ),
    ),
}
"""Each template by its name."""


def files() -> dict[Path, str]:
    """Files to write: each text by its path. Raises ``ValueError`` where a manifest has not what is a value in it."""
    templates = {CHART / "templates" / f"{name}.yaml": _template(part) for name, part in PARTS.items()}
    return {**templates, **{CHART / "files" / place: path.read_text() for path, place in COPIES.items()}}


def _template(part: Part) -> str:
    text = (MANIFESTS / part.source).read_text()
    comment = text[: text.index("apiVersion:")]
    documents = text.removeprefix(comment).split("\n---\n")
    body = "\n---\n".join(documents[part.of])
    body = body[body.index("\n", body.index("---")) + 1 :] if body.startswith("---") else body
    body = f"{body.rstrip()}\n"
    for old, new in part.changes:
        if body.count(old) != 1:
            raise ValueError(f"{part.source}: {old!r} stands there {body.count(old)} times")
        body = body.replace(old, new)
    for old, new in EVERYWHERE:
        body = body.replace(old, new)
    body = USER.sub(r"{{- if not .Values.openshift.enabled }}\n\1{{- end }}\n", body)
    head = f"{{{{/* Written by scripts/chart.py from infra/kubernetes/{part.source}. */}}}}\n"
    return f"{head}{{{{- if {part.when} }}}}\n{body}{{{{- end }}}}\n" if part.when else head + body


def main() -> None:
    """Write every file anew."""
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
