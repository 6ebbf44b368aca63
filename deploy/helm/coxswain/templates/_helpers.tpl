{{- define "coxswain.labels" -}}
app.kubernetes.io/name: coxswain
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "coxswain.selector" -}}
app.kubernetes.io/name: coxswain
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The server's file. What the chart decides cannot be said twice. */ -}}
{{- define "coxswain.config" -}}
{{- range $field := list "listen" "state.dir" "state.mine" "jobs.pool" -}}
  {{- $at := $.Values.config -}}
  {{- range $word := splitList "." $field -}}
    {{- if kindIs "map" $at -}}{{- $at = get $at $word | default nil -}}{{- end -}}
  {{- end -}}
  {{- if $at -}}{{- fail (printf "config.%s: the chart sets it, so remove it" $field) -}}{{- end -}}
{{- end -}}
{{- range $field, $value := dict "inside" "the server is always inside" "namespace" "say pool.namespace" "agent_image" "say agentImage" "image" "say pool.image" -}}
  {{- if hasKey $.Values.pool.settings $field -}}{{- fail (printf "pool.settings.%s: the chart sets it; %s" $field $value) -}}{{- end -}}
{{- end -}}
{{- $agent := printf "%s:%s" .Values.agentImage.repository (.Values.agentImage.tag | default .Chart.AppVersion) -}}
{{- $settings := merge (dict "inside" true "namespace" .Values.pool.namespace "agent_image" $agent "image" .Values.pool.image) .Values.pool.settings -}}
{{- $pool := dict "name" .Values.pool.name "engine" "kube" "settings" $settings -}}
{{- $own := dict
  "state" (dict "dir" "/var/lib/coxswain" "mine" true)
  "listen" (dict "socket" "/run/coxswain/cox.sock" "tcp" "127.0.0.1:7461")
  "jobs" (dict "pool" .Values.pool.name)
  "pools" (prepend (.Values.config.pools | default list) $pool) -}}
{{- toYaml (merge $own (deepCopy .Values.config)) -}}
{{- end }}
