{{- define "postern.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "postern.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "postern.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "postern.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* Labels of an object. Arguments: (dict "root" $ "part" "operator") */ -}}
{{- define "postern.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | quote }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service | quote }}
app.kubernetes.io/part-of: postern
{{ include "postern.selector" . }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "postern.selector" -}}
app.kubernetes.io/name: {{ include "postern.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- /* Image of a component. Arguments: (dict "root" $ "image" .Values.operator.image) */ -}}
{{- define "postern.image" -}}
{{- $common := .root.Values.image }}
{{- $name := .image.repository }}
{{- if $common.registry }}{{ $name = printf "%s/%s" (trimSuffix "/" $common.registry) $name }}{{ end }}
{{- if .image.digest -}}
{{ $name }}@{{ .image.digest }}
{{- else -}}
{{ $name }}:{{ coalesce .image.tag $common.tag .root.Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "postern.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "postern.podSecurity" -}}
runAsNonRoot: true
{{- with .Values.runAsUser }}
runAsUser: {{ int . }}
runAsGroup: {{ int . }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "postern.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* Scheduling of pods. Arguments: (dict "root" $ "part" "operator" "values" .Values.operator) */ -}}
{{- define "postern.placement" -}}
{{- with .values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- if .values.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{ include "postern.selector" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
{{- end }}

{{- define "postern.account" -}}
{{- $values := .values.serviceAccount }}
{{- if $values.name }}{{ $values.name }}
{{- else if $values.create }}{{ include "postern.fullname" .root }}-{{ .part }}
{{- else }}default{{ end }}
{{- end }}

{{- /*
An address with a password, as the Secret and key that have it. (dict "root" $ "name" "database" "address" .Values.database)
Without one it is empty: the caller decides what that means.
*/ -}}
{{- define "postern.addressSecret" -}}
{{- if .address.existingSecret -}}
{{ dict "name" .address.existingSecret "key" .address.existingSecretKey "optional" false | toYaml }}
{{- else if or .address.url (and .root.Values.dev.enabled (has .name (list "database" "redis"))) -}}
{{ dict "name" (printf "%s-addresses" (include "postern.fullname" .root)) "key" .name "optional" false | toYaml }}
{{- end }}
{{- end }}

{{- define "postern.databaseSecret" -}}
{{- required "set database.existingSecret, database.url or dev.enabled" (include "postern.addressSecret" (dict "root" . "name" "database" "address" .Values.database)) }}
{{- end }}

{{- /* Database user that owns the schema. */ -}}
{{- define "postern.migrationSecret" -}}
{{- $own := include "postern.addressSecret" (dict "root" . "name" "migration" "address" .Values.database.migration) }}
{{- $own | default (include "postern.databaseSecret" .) }}
{{- end }}

{{- define "postern.redisSecret" -}}
{{- required "set redis.existingSecret, redis.url or dev.enabled" (include "postern.addressSecret" (dict "root" . "name" "redis" "address" .Values.redis)) }}
{{- end }}

{{- define "postern.rootKeySecret" -}}
{{- default (printf "%s-operator-root-key" (include "postern.fullname" .)) .Values.operator.rootKey.existingSecret }}
{{- end }}

{{- define "postern.apiUrl" -}}
http{{ if .Values.apiServer.tls.existingSecret }}s{{ end }}://{{ include "postern.fullname" . }}-api-server.{{ .Release.Namespace }}.svc:{{ .Values.apiServer.service.port }}
{{- end }}

{{- /* Key of the Secret with the CA of the API certificate; empty for a public CA or without TLS. */ -}}
{{- define "postern.apiAuthority" -}}
{{- if .Values.apiServer.tls.existingSecret }}
{{- if and .Values.apiServer.tls.caKey (include "postern.reviewsTokens" .) }}
{{- fail "apiServer.tls.caKey: gates are in other namespaces and cannot have this authority. Use a certificate of a public one, or injection.existingSecret" }}
{{- end }}
{{- .Values.apiServer.tls.caKey }}
{{- end }}
{{- end }}

{{- /* Without access to the cluster, as in `helm template`, the name is required. */ -}}
{{- define "postern.clusterName" -}}
{{- $system := lookup "v1" "Namespace" "" "kube-system" | default dict }}
{{- coalesce .Values.operator.clusterName (dig "metadata" "uid" "" $system) | required "set operator.clusterName: it is part of the manager's name of each object" }}
{{- end }}

{{- /* `true` if gates are injected, else empty. Webhook configurations are cluster-scoped. */ -}}
{{- define "postern.injects" -}}
{{- if and .Values.injection.enabled (not .Values.scopedNamespaces) }}true{{ end }}
{{- end }}

{{- /* Whether gates fetch Redis users with their pod tokens. */ -}}
{{- define "postern.reviewsTokens" -}}
{{- if and (include "postern.injects" .) (not .Values.injection.existingSecret) }}true{{ end }}
{{- end }}

{{- /* Name of the webhook Service and its Secret. */ -}}
{{- define "postern.webhookName" -}}
{{ include "postern.fullname" . }}-webhook
{{- end }}

{{- /* Name of the cluster-scoped webhook configurations. */ -}}
{{- define "postern.webhookConfiguration" -}}
{{ .Release.Namespace }}-{{ include "postern.fullname" . }}
{{- end }}

{{- /* URL without a user, because each gate gets its own. Arguments: (dict "given" "" "url" "redis://:secret@host") */ -}}
{{- define "postern.withoutUser" -}}
{{ .given | default (regexReplaceAll "^([a-z]+://)[^/@]*@" .url "${1}") }}
{{- end }}

{{- /* Redis URLs for gates in other namespaces, as environment variables. */ -}}
{{- define "postern.gateStores" -}}
{{- $url := include "postern.withoutUser" (dict "given" .Values.injection.redisUrl "url" .Values.redis.url) }}
{{- if and (not $url) .Values.dev.enabled (not .Values.redis.existingSecret) }}
{{- $url = printf "redis://%s-dev-redis.%s.svc:6379" (include "postern.fullname" .) .Release.Namespace }}
{{- end }}
{{- $events := include "postern.withoutUser" (dict "given" .Values.injection.eventsRedisUrl "url" .Values.eventsRedis.url) }}
{{- if or (not $url) (and .Values.eventsRedis.existingSecret (not $events)) }}
{{- fail "set injection.redisUrl (and injection.eventsRedisUrl, where there is one): gates reach Redis by it and may not read its Secret. Or set injection.existingSecret, or injection.enabled=false" }}
{{- end -}}
REDIS_URL={{ $url }},POSTERN_REDIS_PREFIX={{ .Values.redisPrefix }}
{{- with $events }},EVENTS_REDIS_URL={{ . }}{{ end }}
{{- with .Values.region }},POSTERN_REGION={{ . }}{{ end }}
{{- with .Values.docsUrl }},POSTERN_DOCS_URL={{ . }}{{ end }}
{{- end }}

{{- /* Resources in the form `cpu-request=10m,…`. */ -}}
{{- define "postern.gateResources" -}}
{{- $all := list }}
{{- range $side, $word := dict "requests" "request" "limits" "limit" }}
{{- range $name, $quantity := dig $side dict $.Values.injection.gateResources }}
{{- $all = append $all (printf "%s-%s=%v" $name $word $quantity) }}
{{- end }}
{{- end }}
{{- join "," $all }}
{{- end }}
