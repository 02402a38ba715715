{{- define "geogenius.labels" -}}
app.kubernetes.io/name: geogenius
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "geogenius.selector" -}}
app.kubernetes.io/name: geogenius
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
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
