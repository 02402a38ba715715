{{- define "geogenius.labels" -}}
app.kubernetes.io/name: geogenius
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* Of one component: (list . "operator") */ -}}
{{- define "geogenius.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: geogenius
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "geogenius.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- define "geogenius.databaseEnv" -}}
- name: GEOGENIUS_DATABASE__URL
  valueFrom:
    secretKeyRef: {name: {{ .Values.database.existingSecret | quote }}, key: {{ .Values.database.urlKey | quote }}}
- name: GEOGENIUS_DATABASE__SCHEMA_NAME
  value: {{ .Values.database.schema | quote }}
{{- end }}

{{- define "geogenius.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* Brings the schema up to date before the program starts: (list . .Values.operator) */ -}}
{{- define "geogenius.migrate" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- if $root.Values.migrations.enabled }}
initContainers:
  - name: migrate
    image: {{ include "geogenius.image" $root | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    args: [migrate]
    env:
      {{- include "geogenius.databaseEnv" $root | nindent 6 }}
      {{- with $component.extraEnv }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    securityContext: {{- include "geogenius.containerSecurity" $root | nindent 6 }}
    resources: {{- toYaml $component.resources | nindent 6 }}
    volumeMounts: [{name: scratch, mountPath: /tmp}]
{{- end }}
{{- end }}

{{- define "geogenius.downloadEnv" -}}
- name: GEOGENIUS_DOWNLOAD__ALLOW_HTTP
  value: {{ .Values.importer.download.allowHttp | quote }}
- name: GEOGENIUS_DOWNLOAD__ALLOW_PRIVATE_ADDRESSES
  value: {{ .Values.importer.download.allowPrivateAddresses | quote }}
{{- end }}

{{- define "geogenius.queueEnv" -}}
- name: GEOGENIUS_PGFLOW__DEADLINE_SECONDS
  value: {{ .Values.worker.deadlineSeconds | int64 | quote }}
{{- end }}

{{- define "geogenius.telemetryEnv" -}}
- name: GEOGENIUS_TELEMETRY__LEVEL
  value: {{ .logLevel | quote }}
- name: GEOGENIUS_TELEMETRY__FORMAT
  value: {{ .logFormat | quote }}
{{- end }}

{{- define "geogenius.probes" -}}
ports: [{name: probes, containerPort: 8080}]
startupProbe:
  httpGet: {path: /livez, port: probes}
  periodSeconds: 1
  failureThreshold: 120
livenessProbe:
  httpGet: {path: /livez, port: probes}
  periodSeconds: 10
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: probes}
  periodSeconds: 2
{{- end }}

{{- define "geogenius.rules" -}}
- apiGroups: [geogenius.io]
  resources: [importrequests]
  verbs: [get, list, watch]
- apiGroups: [geogenius.io]
  resources: [importrequests/status]
  verbs: [patch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [pods, events]
  verbs: [list]
{{- end }}
