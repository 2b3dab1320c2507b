{{- define "worker.name" -}}
gardener-extension-worker
{{- end -}}

{{- define "worker.selector" -}}
app.kubernetes.io/name: {{ include "worker.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "worker.labels" -}}
{{ include "worker.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "worker.image" -}}
{{- $repository := required "image.repository is needed" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ required "image.tag or image.digest is needed" .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- /* Arguments of the controller by their long names (docs/cli.md). */ -}}
{{- define "worker.configuration" -}}
{{- $values := .Values -}}
{{- $arguments := dict
      "worker-type" $values.workers.types
      "extension-classes" $values.workers.extensionClasses
      "worker-max-concurrent-reconciles" $values.workers.maxConcurrentReconciles
      "ignore-operation-annotation" $values.workers.ignoreOperationAnnotation
      "health-check" $values.workers.healthCheck
      "image-drift" $values.workers.imageDrift
      "pin-images" $values.workers.pinImages
      "version-forecast" $values.workers.versionForecast
      "shadow" $values.shadow
      "log-level" $values.logging.level
      "log-format" $values.logging.format
      "metrics-port" $values.ports.metrics
      "health-port" $values.ports.health
      "leader-election-lease-seconds" $values.leaderElection.leaseSeconds
      "heartbeat-renew-interval-seconds" $values.heartbeat.renewIntervalSeconds -}}
{{- if not (kindIs "invalid" $values.workers.rollBudget) }}
{{- $_ := set $arguments "roll-budget" $values.workers.rollBudget }}
{{- end }}
{{- if $values.images.enabled }}
{{- $_ := set $arguments "images" true }}
{{- $_ := set $arguments "image-interval-seconds" $values.images.intervalSeconds }}
{{- $_ := set $arguments "image-machine-templates" $values.images.machineTemplates }}
{{- $sources := list }}
{{- $named := list }}
{{- range $values.images.sources }}
{{- if has .configMapName $named }}{{ fail (printf "images.sources names the ConfigMap %s twice" .configMapName) }}{{ end }}
{{- $named = append $named .configMapName }}
{{- $path := printf "/etc/images/%s" .configMapName }}
{{- $sources = append $sources (ternary (printf "%s=%s" (default "" .region) $path) $path (not (empty .region))) }}
{{- end }}
{{- with $sources }}{{ $_ := set $arguments "image-source" . }}{{ end -}}
{{- if $values.images.identitySecrets }}{{ $_ := set $arguments "image-identities" "/etc/image-identities" }}{{ end -}}
{{- end }}
{{- with $values.sharding.ring }}
{{- if $values.shadow }}{{ fail "sharding.ring and shadow exclude each other" }}{{ end }}
{{- if $values.images.enabled }}{{ fail "sharding.ring and images.enabled exclude each other" }}{{ end }}
{{- if has "worker" $values.disableControllers }}{{ fail "sharding.ring and the part worker of disableControllers exclude each other" }}{{ end }}
{{- if lt (int $values.leaderElection.leaseSeconds) 6 }}{{ fail "sharding.ring needs leaderElection.leaseSeconds of 6 or more" }}{{ end }}
{{- $_ := set $arguments "shard-ring" . }}
{{- end }}
{{- with $values.disableControllers }}{{ $_ := set $arguments "disable-controllers" . }}{{ end -}}
{{- with $values.azure.resourceManagerUrl }}{{ $_ := set $arguments "azure-resource-manager-url" . }}{{ end -}}
{{- with $values.azure.authorityUrl }}{{ $_ := set $arguments "azure-authority-url" . }}{{ end -}}
{{- with $values.traces.otlpEndpoint }}{{ $_ := set $arguments "otlp-endpoint" . }}{{ end -}}
{{- with $values.garden.kubeconfigSecretName }}{{ $_ := set $arguments "garden-kubeconfig" "/var/run/secrets/garden/kubeconfig" }}{{ end -}}
{{- toYaml $arguments -}}
{{- end -}}

{{/* The runbooks of alerts: the page that the values name, else that of the published documentation. */}}
{{- define "worker.alerts" -}}
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
