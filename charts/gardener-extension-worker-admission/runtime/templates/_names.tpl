{{- define "admission.name" -}}
gardener-extension-worker-admission
{{- end -}}

{{- define "admission.selector" -}}
app.kubernetes.io/name: {{ include "admission.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "admission.labels" -}}
{{ include "admission.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "admission.image" -}}
{{- $repository := required "image.repository is needed" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ required "image.tag or image.digest is needed" .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- /* Arguments of the webhooks by their long names (docs/cli.md). */ -}}
{{- define "admission.configuration" -}}
{{- $values := .Values -}}
{{- $arguments := dict
      "provider-type" $values.providerTypes
      "node-warnings" $values.nodeWarnings
      "profile-warnings" $values.profileWarnings
      "webhook-config-name" (include "admission.name" .)
      "webhook-config-namespace" .Release.Namespace
      "webhook-config-server-port" $values.ports.webhook
      "webhook-config-mode" "service"
      "metrics-port" $values.ports.metrics
      "health-port" $values.ports.health
      "log-level" $values.logging.level
      "log-format" $values.logging.format -}}
{{- $own := printf "%s.%s" (include "admission.name" .) .Release.Namespace -}}
{{- $virtual := $values.gardener.virtualCluster -}}
{{- /* From Gardener 1.151 on, `enabled` is deprecated: only a virtual garden has a namespace for the extension. */ -}}
{{- if or $virtual.enabled $virtual.namespace }}
{{- $_ := set $arguments "webhook-config-mode" "url" }}
{{- $_ := set $arguments "webhook-config-url" (default $own $values.webhook.url) }}
{{- end -}}
{{- with default $virtual.namespace $values.webhook.ownerNamespace }}
{{- $_ := set $arguments "webhook-config-owner-namespace" . }}
{{- end -}}
{{- with $values.garden.kubeconfigSecretName }}
{{- $_ := set $arguments "garden-kubeconfig" "/var/run/secrets/garden/kubeconfig" }}
{{- end -}}
{{- if $values.certificate.secretName }}
{{- $_ := set $arguments "tls-cert-file" "/var/run/secrets/certificate/tls.crt" }}
{{- $_ := set $arguments "tls-private-key-file" "/var/run/secrets/certificate/tls.key" }}
{{- $_ := set $arguments "tls-ca-file" "/var/run/secrets/certificate/ca.crt" }}
{{- else }}
{{- $_ := set $arguments "certificate-validity" $values.certificate.validity }}
{{- $_ := set $arguments "certificate-announcement" $values.certificate.announcement }}
{{- end -}}
{{- toYaml $arguments -}}
{{- end -}}

{{/* The runbooks of alerts: the page that the values name, else that of the published documentation. */}}
{{- define "admission.alerts" -}}
{{- $rules := .root.Files.Get .file -}}
{{- $url := .root.Values.metrics.prometheusRule.runbookUrl -}}
{{- if and (not $url) .root.Chart.Home -}}
{{- $url = printf "%s/runbooks.html" (trimSuffix "/" .root.Chart.Home) -}}
{{- end -}}
{{- if $url -}}
{{ $rules | replace "RUNBOOKS" $url }}
{{- else -}}
{{ regexReplaceAll "(?m)^ *runbook_url: RUNBOOKS.*\n" $rules "" }}
{{- end -}}
{{- end -}}
