{{/* Labels of every object. */}}
{{- define "pilotlight.labels" -}}
{{ dict "app.kubernetes.io/name" "pilotlight" "app.kubernetes.io/instance" .Release.Name "app.kubernetes.io/version" .Chart.AppVersion "app.kubernetes.io/managed-by" .Release.Service "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version) | toJson }}
{{- end }}

{{/* The image, by its digest where one is named. */}}
{{- define "pilotlight.image" -}}
{{- $name := required "image.repository: name the image, as --set image.repository=registry.acme.com/pilotlight --set image.tag=1; make image builds it" .Values.image.repository -}}
{{- if .Values.image.digest }}{{ $name }}@{{ .Values.image.digest }}{{ else }}{{ $name }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Where its pods may run, and who pulls their image. */}}
{{- define "pilotlight.pod" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- with .Values.pod.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.pod.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.pod.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- end }}

{{/* The policy as data. */}}
{{- define "pilotlight.policy" -}}
{{- $policy := .Values.policy | fromYaml -}}
{{- if hasKey $policy "Error" }}{{ fail (printf "policy: not YAML: %s" $policy.Error) }}{{ end -}}
{{ toJson $policy }}
{{- end }}

{{/* Not empty where a pool may be scaled up or given back: the mode's own, or that of one pool. */}}
{{- define "pilotlight.acts" -}}
{{- $modes := list .Values.mode -}}
{{- range $name, $pool := (include "pilotlight.policy" . | fromJson).pools }}{{ $modes = append $modes ($pool.mode | default "") }}{{ end -}}
{{- if or (has "act" $modes) (has "scale-up" $modes) }}yes{{ end }}
{{- end }}

{{/* The policy's pools as their cloud names them: a list of CEL, as `pilotlight connect --act` writes it. */}}
{{- define "pilotlight.poolList" -}}
{{- $names := list -}}
{{- range $name, $pool := (include "pilotlight.policy" . | fromJson).pools }}
{{- $one := $pool.cluster_pool | default $name | toString -}}
{{- if not (regexMatch "^[A-Za-z0-9._/-]+$" $one) }}{{ fail (printf "policy: pools.%s: %q is no name of a pool" $name $one) }}{{ end -}}
{{- $names = append $names (printf "'%s'" $one) }}
{{- end -}}
{{- if not $names }}{{ fail (printf "mode %s needs your policy: --set-file policy=policy.yaml" .Values.mode) }}{{ end -}}
[{{ $names | uniq | sortAlpha | join ", " }}]
{{- end }}

{{/* Those of them that can be a label of a node, as a list of YAML. */}}
{{- define "pilotlight.poolLabels" -}}
{{- $names := list -}}
{{- range include "pilotlight.poolList" . | fromYamlArray }}
{{- if regexMatch "^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$" . }}{{ $names = append $names . }}{{ end -}}
{{- end -}}
{{ $names | default (list "") | toJson }}
{{- end }}

{{/* Not empty where the policy keeps nodes for pods: it has a homed pool. */}}
{{- define "pilotlight.placement" -}}
{{- $policy := include "pilotlight.policy" . | fromJson }}
{{- if ne ($policy.placement | default "homes") "none" }}
{{- range $pool := $policy.pools }}{{ range $pool.taints }}{{ if eq .key "pilotlight.dev/home" }}yes{{ end }}{{ end }}{{ end }}
{{- end }}
{{- end }}

{{/* What is there only while the release goes: first before its objects go, for the watchman goes with them, and again
after, for a home that is still at work marks nodes until then. */}}
{{- define "pilotlight.uninstalling" -}}
{{ dict "helm.sh/hook" "pre-delete,post-delete" "helm.sh/hook-weight" . "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded" | toJson }}
{{- end }}

{{/* Not empty where a pool goes back to whoever kept it before when nothing is heard of Pilotlight. */}}
{{- define "pilotlight.handback" -}}
{{- range $name, $pool := (include "pilotlight.policy" . | fromJson).pools -}}
{{- if eq ($pool.on_silence | default "keep") "hand-back" }}yes{{ end -}}
{{- end -}}
{{- end }}

{{/* The Secret with who may post. */}}
{{- define "pilotlight.secret" -}}
{{ .Values.secret.existing | default "pilotlight" }}
{{- end }}

{{/* The port of the Prometheus. */}}
{{- define "pilotlight.telemetryPort" -}}
{{- $url := urlParse .Values.telemetry -}}
{{- regexFind ":[0-9]+$" $url.host | trimPrefix ":" | default (eq $url.scheme "https" | ternary "443" "80") -}}
{{- end }}

{{/* The namespace of its Service, where it is one of this cluster: prometheus.NAMESPACE. */}}
{{- define "pilotlight.telemetryNamespace" -}}
{{- $url := urlParse .Values.telemetry -}}
{{- if eq $url.scheme "http" -}}
{{- $names := splitList "." (regexReplaceAll ":[0-9]+$" $url.host "") -}}
{{- if gt (len $names) 1 }}{{ index $names 1 }}{{ else }}{{ .Release.Namespace }}{{ end -}}
{{- end -}}
{{- end }}
