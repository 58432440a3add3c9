import { z } from "zod";
import { PERSON_ROLES } from "../../../core/permissions/person-roles.ts";

/*
 * Values of charts/postern, with defaults and descriptions. `values.yaml` and `values.schema.json` are generated from them.
 */

const labels = (what: string) => z.record(z.string(), z.string()).default({}).describe(what);
const anything = (what: string) => z.record(z.string(), z.unknown()).default({}).describe(what);
const list = (what: string) => z.array(z.unknown()).default([]).describe(what);
const switchedOff = (what: string) => z.boolean().default(false).describe(what);
const switchedOn = (what: string) => z.boolean().default(true).describe(what);
const text = (what: string, value = "") => z.string().default(value).describe(what);
const count = (what: string, value: number, min = 0) => z.int().min(min).default(value).describe(what);
const group = <T extends z.ZodRawShape>(what: string, shape: T) => z.strictObject(shape).describe(what);

const Quantity = z.union([z.string(), z.number()]);
const resources = (cpu: string, memory: string, memoryLimit: string) =>
  z
    .strictObject({
      requests: z.record(z.string(), Quantity).optional(),
      limits: z.record(z.string(), Quantity).optional(),
    })
    .default({ requests: { cpu, memory }, limits: { memory: memoryLimit } })
    .describe("Resource requests and limits of a pod.");

const image = (repository: string, what = "Image of the container.") =>
  group(what, {
    repository: text("Image name, appended to `image.registry`.", repository),
    tag: text("Image tag. Default: `image.tag`."),
    digest: text("Image digest, `sha256:…`. Overrides the tag."),
  });

/** Returns the schema of a URL that contains a password. The URL is set as a value or, preferably, by a Secret. */
const address = (what: string, example: string) => ({
  url: text(`${what} in plain text, such as \`${example}\`. The chart stores it in a Secret.`),
  existingSecret: text("Existing Secret with the URL, instead of `url`. Changes are reloaded."),
  existingSecretKey: text("Key in `existingSecret` with the URL.", "url"),
});

/** Settings that every Deployment has. */
const pods = {
  podAnnotations: labels("Additional annotations of the pods."),
  podLabels: labels("Additional labels of the pods."),
  nodeSelector: labels("Node labels that the pods require."),
  tolerations: list("Tolerations of the pods."),
  affinity: anything("Affinity of the pods."),
  priorityClassName: text("Priority class of the pods."),
  topologySpreadConstraints: switchedOn("Whether to spread the pods over nodes and zones if possible."),
  extraArgs: z.array(z.string()).default([]).describe("Additional command options: docs/reference/cli.md."),
  extraEnv: list("Additional environment variables."),
  extraVolumes: list("Additional volumes of the pods."),
  extraVolumeMounts: list("Mounts of the additional volumes in the container."),
};

const disruption = group("PodDisruptionBudget of the pods.", {
  enabled: switchedOn("Whether the chart creates a PodDisruptionBudget for more than one replica."),
  maxUnavailable: z
    .union([z.int().min(1), z.string()])
    .default(1)
    .describe("Maximum number or percentage of unavailable pods."),
});

const account = (what: string) =>
  group(what, {
    create: switchedOn("Whether the chart creates the ServiceAccount."),
    name: text("Name of the ServiceAccount. Default: derived from the release name."),
    annotations: labels("Annotations of the ServiceAccount."),
  });

export const Values = z.strictObject({
  nameOverride: text("Overrides the chart name in resource names."),
  fullnameOverride: text("Overrides the release and chart name in resource names."),
  commonLabels: labels("Additional labels of all objects."),

  image: group("Settings of all images.", {
    registry: text("Registry and path: `registry.example/postern`."),
    tag: text("Image tag. Default: the chart's appVersion."),
    pullPolicy: z
      .enum(["IfNotPresent", "Always", "Never"])
      .default("IfNotPresent")
      .describe("Pull policy of the images."),
    pullSecrets: z
      .array(z.strictObject({ name: z.string() }))
      .default([])
      .describe("Pull secrets of the registry."),
  }),

  apiServer: group("Api-server: serves the HTTP API, relays changes to Redis and stores usage events.", {
    image: image("postern-api-server"),
    replicas: count("Number of replicas. Ignored when `apiServer.autoscaling.enabled` is true.", 2),
    resources: resources("100m", "256Mi", "512Mi"),
    port: count("Container port of the API.", 8080, 1),
    adminPort: count(
      "Container port of metrics and API documentation, which callers of the API need not reach.",
      8004,
      1,
    ),
    tls: group("TLS of the API. Without it, terminate TLS at an ingress.", {
      existingSecret: text(
        "Secret with `tls.crt` and `tls.key` for `<release>-api-server.<namespace>.svc`, reloaded on change. Empty disables TLS.",
      ),
      caKey: text(
        "Key in `existingSecret` with the CA, for the operator. Empty for a public CA, which gates require if they fetch Redis users from the api-server.",
      ),
    }),
    service: group("Service of the pods.", {
      type: z.enum(["ClusterIP", "NodePort", "LoadBalancer"]).default("ClusterIP").describe("Type of the Service."),
      port: count("Port of the Service.", 80, 1),
      annotations: labels("Annotations of the Service."),
    }),
    autoscaling: group("HorizontalPodAutoscaler of the api-server.", {
      enabled: switchedOff("Whether the chart creates a HorizontalPodAutoscaler."),
      minReplicas: count("Minimum number of replicas.", 2, 1),
      maxReplicas: count("Maximum number of replicas.", 6, 1),
      targetCPUUtilizationPercentage: count("Target CPU utilization, in percent of the requested CPU.", 70, 1),
    }),
    podDisruptionBudget: disruption,
    serviceAccount: account("ServiceAccount of the pods."),
    terminationGracePeriodSeconds: count("Termination grace period of a pod, in seconds.", 30, 1),
    encryptionKeys: group(
      "Encryption keys of recoverable API keys, one `ID:BASE64` per line. The first encrypts, all decrypt.",
      {
        existingSecret: text("Secret with the encryption keys. Empty disables recoverable keys."),
        existingSecretKey: text("Key in `existingSecret` with the encryption keys.", "keys"),
      },
    ),
    dashboard: group("Dashboard, at `/dashboard/` on the API port.", {
      enabled: switchedOn("Whether the api-server serves the dashboard."),
      url: text(
        "External URL of the dashboard, such as `https://postern.example.com`. Empty: sign in through `kubectl port-forward` or the api-server's TLS.",
      ),
      oidc: group("OpenID provider for sign-in. Without it, people sign in with links.", {
        issuer: text("Issuer URL of the provider; requires `url`. Empty disables the provider."),
        clientId: text("Client id of the dashboard; the redirect URI is `<url>/dashboard/auth/callback`."),
        existingSecret: text("Secret with the client secret, reloaded on change. Empty: public client."),
        existingSecretKey: text("Key in `existingSecret` with the client secret.", "client-secret"),
        scopes: text("Scopes that the dashboard requests.", "openid profile email"),
        groupsClaim: text("Claim with a person's groups.", "groups"),
      }),
      groupRoles: z
        .record(z.string(), z.record(z.string(), z.enum(PERSON_ROLES)))
        .default({})
        .describe("Roles by group and workspace (`*` for all). Changes apply to open sessions."),
    }),
    ...pods,
  }),

  operator: group("Operator: reconciles the manifests.", {
    image: image("postern-operator"),
    replicas: count("Number of replicas, of which one is the leader.", 2),
    resources: resources("50m", "96Mi", "128Mi"),
    adminPort: count("Container port of probes and metrics.", 8002, 1),
    clusterName: text(
      "Unique name of this cluster among all that share the database. It is part of resource ownership: never change it.",
    ),
    podDisruptionBudget: disruption,
    serviceAccount: account("ServiceAccount of the pods."),
    terminationGracePeriodSeconds: count("Termination grace period of a pod, in seconds.", 30, 1),
    rootKey: group("Root key of the operator.", {
      existingSecret: text(
        "Secret with the root key. Default: a Job creates a root key with the required permissions.",
      ),
      existingSecretKey: text("Key in `existingSecret` with the root key.", "rootKey"),
      workspace: text("Workspace of the root key that the Job creates. Default: `default`."),
    }),
    rootKeys: group("Root keys of several workspaces: docs/multi-tenancy.md.", {
      existingSecret: text("Secret with one root key per workspace, under the workspace name, reloaded on change."),
      defaultWorkspace: text("Workspace of namespaces without a workspace label. Empty: their objects are rejected."),
    }),
    tenancy: anything("Workspace and allowed names of each namespace: docs/multi-tenancy.md."),
    ...pods,
  }),

  controllerClass: text(
    "Controller class of this release: its operator handles objects and pods with this label `postern.dev/controller-class`. Empty: those without the label.",
  ),
  otherControllerClasses: z
    .array(z.string())
    .default([])
    .describe(
      "Classes of other releases that inject gates, for the release without a class, which rejects guarded pods of any other class.",
    ),
  injection: group(
    "Gate injection: docs/injection.md. Disabled with scopedNamespaces, because webhooks are cluster-scoped.",
    {
      enabled: switchedOn("Whether the operator injects gates into guarded pods."),
      image: image("postern-sidecar"),
      redirectImage: image(
        "postern-redirect",
        "Image with sh, iptables and ip6tables, for policies with `interception: Redirect`.",
      ),
      port: count("Container port of the webhook.", 19_443, 1),
      certManager: group("Webhook certificate by cert-manager. If disabled, the operator creates one.", {
        enabled: switchedOff("Whether cert-manager issues the certificate. It must be installed."),
        issuerRef: anything("Issuer, `kind` and `name`. Default: the chart creates a CA."),
      }),
      gatePort: count("Port of gates, or the next free port of the pod.", 19_080, 1),
      gateAdminPort: count("Admin port of gates (probes, metrics), or the next free port of the pod.", 19_081, 1),
      gateResources: resources("10m", "64Mi", "320Mi"),
      preStopSleepSeconds: count(
        "Sleep of guarded pods' containers without a preStop hook before termination, in seconds.",
        5,
      ),
      redisUrl: text(
        "URL of Redis for gates, without a user. Default: that of `redis.url`. Each gate gets its own temporary Redis user.",
      ),
      eventsRedisUrl: text("URL (without a user) of a separate Redis for usage events."),
      existingSecret: text(
        "Secret in each guarded namespace with environment variables of gates, such as REDIS_URL with a password. Use it if the api-server may not create Redis users.",
      ),
    },
  ),

  extAuth: group(
    "External authorization for gateways: gates without an app, docs/gateways.md. They enforce one policy.",
    {
      enabled: switchedOff("Whether the chart creates gates for gateways."),
      image: image("postern-sidecar"),
      replicas: count("Number of replicas.", 2),
      resources: resources("50m", "96Mi", "320Mi"),
      workspace: text("Id of the policy's workspace: `status.workspaceId` of the ApiKeyPolicy."),
      policy: text("ApiKeyPolicy to enforce, `NAMESPACE/NAME` in this cluster, or the id of a policy."),
      existingSecret: text(
        "Secret with `REDIS_URL` of the workspace's user (`postern redis-acl`), and optionally `EVENTS_REDIS_URL`. Default with `dev.enabled`: the Redis of the release.",
      ),
      authorizePort: count("Port of the HTTP ext-auth endpoint, `/authorize`. 0 disables it.", 8002),
      grpcPort: count(
        "Port of the gRPC ext-auth endpoint: Envoy's ext_authz and rate limit service. 0 disables it.",
        8003,
      ),
      adminPort: count("Container port of probes and metrics.", 8001, 1),
      trustedGateways: z
        .array(z.string())
        .default([])
        .describe(
          "Addresses and CIDR blocks of gateway pods that may call. Required, unless `extAuth.tls.clientCaKey` replaces it.",
        ),
      tls: group("TLS of the ext-auth endpoints.", {
        existingSecret: text(
          "Secret with `tls.crt` and `tls.key` for `<release>-ext-auth.<namespace>.svc`, reloaded on change. Empty disables TLS.",
        ),
        clientCaKey: text(
          "Key in `existingSecret` with the CA of gateway client certificates, which are then required.",
        ),
      }),
      service: group("Service of the pods.", {
        headless: switchedOff(
          "Whether the Service is headless, so that gateways such as Envoy balance the pods themselves.",
        ),
        annotations: labels("Annotations of the Service."),
      }),
      podDisruptionBudget: disruption,
      serviceAccount: account("ServiceAccount of the gates. Its token is not mounted."),
      terminationGracePeriodSeconds: count("Termination grace period of a pod, in seconds.", 30, 1),
      ...pods,
    },
  ),

  apiKeyNamespaces: z
    .array(z.string())
    .default([])
    .describe(
      "Existing namespaces that may contain ApiKeys. A Role in each lets the operator write Secrets without reading their data.",
    ),

  scopedNamespaces: z
    .array(z.string())
    .default([])
    .describe(
      "Existing namespaces that the operator watches, with a Role in each instead of a ClusterRole. Default: all.",
    ),

  database: group("Postgres 15 or later.", {
    ...address("URL of Postgres", "postgres://user:password@host/database"),
    migration: group("Database user that owns the schema, for the migration Job. Default: the same user.", {
      ...address("URL of Postgres with that user", "postgres://owner:password@host/database"),
    }),
  }),
  redis: group("Redis 7 or later.", address("URL of Redis", "rediss://user:password@host:6379")),
  eventsRedis: group(
    "Separate Redis for usage events. Default: the same Redis.",
    address("URL of that Redis", "redis://host:6379"),
  ),
  analytics: group(
    "ClickHouse for usage events. Default: Postgres.",
    address("URL of ClickHouse", "https://user:password@host:8443/database"),
  ),
  redisPrefix: text("Prefix of all Redis keys.", "ps"),
  region: text("Region name, recorded with each usage event."),
  docsUrl: z
    .string()
    .regex(/^$|^https?:\/\/[^\s,"']+$/)
    .default("")
    .describe(
      "Base URL of error types (`<docsUrl>/errors/<kind>`), such as `https://docs.example`. Default: `https://postern.dev`. Each api-server serves these pages at `/errors/<kind>`.",
    ),

  migrations: group("Job that migrates the database.", {
    enabled: switchedOn("Whether the chart creates the migration Job."),
    waitSeconds: count("Time that the Job waits for the database, in seconds.", 300),
    resources: resources("50m", "128Mi", "256Mi"),
  }),

  crds: group("CustomResourceDefinitions of postern.dev.", {
    enabled: switchedOn("Whether the chart installs the CRDs."),
    keep: switchedOn("Whether `helm uninstall` keeps the CRDs. Deleting a CRD deletes all its objects."),
  }),
  rbac: group("RBAC of the components.", {
    create: switchedOn("Whether the chart creates the required roles and bindings."),
    personas: switchedOn("Whether to aggregate the kinds into the ClusterRoles view, edit and admin."),
  }),

  runAsUser: z
    .union([z.int().min(1), z.null()])
    .default(65532)
    .describe("User id of all pods; null lets the cluster choose, as OpenShift requires."),

  networkPolicy: group("NetworkPolicies for the pods of this chart.", {
    enabled: switchedOff("Whether the chart creates NetworkPolicies."),
    apiFrom: list("Sources that may call the API, as `from` of a NetworkPolicy. Default: all pods of the cluster."),
    extAuthFrom: list(
      "Sources that may call the ext-auth endpoints, as `from` of a NetworkPolicy. Default: all pods of the cluster.",
    ),
    metricsFrom: list("Sources that may scrape metrics. Default: all pods of the cluster."),
  }),
  monitoring: group("Objects for the Prometheus operator and Grafana.", {
    serviceMonitor: group("ServiceMonitors of api-server, operator and ext-auth gates.", {
      enabled: switchedOff("Whether the chart creates ServiceMonitors."),
      interval: text("Scrape interval.", "30s"),
      labels: labels("Labels that Prometheus selects ServiceMonitors by."),
    }),
    podMonitor: group("PodMonitor of the gates in all pods.", {
      enabled: switchedOff("Whether the chart creates the PodMonitor."),
      interval: text("Scrape interval.", "30s"),
      labels: labels("Labels that Prometheus selects PodMonitors by."),
    }),
    prometheusRule: group("PrometheusRule with alerts.", {
      enabled: switchedOff("Whether the chart creates the PrometheusRule."),
      labels: labels("Labels that Prometheus selects rules by."),
      runbookUrl: text(
        "URL of your copy of docs/operations/alerts.md. The `runbook_url` of an alert is this URL, `#` and the lower-case alert name.",
        "https://postern.dev/docs/operations/alerts",
      ),
    }),
    dashboards: group("ConfigMaps with Grafana dashboards.", {
      enabled: switchedOff("Whether the chart creates the ConfigMaps."),
      labels: labels('Labels that Grafana selects ConfigMaps by, in addition to `grafana_dashboard: "1"`.'),
    }),
  }),

  dev: group("Temporary Postgres and Redis of the release, without volumes, for evaluation.", {
    enabled: switchedOff("Whether the chart creates Postgres and Redis. They lose their data with their pods."),
    password: text("Password of Postgres and Redis.", "postern"),
    postgres: group("Temporary Postgres.", { image: text("Image of Postgres.", "postgres:18") }),
    redis: group("Temporary Redis.", { image: text("Image of Redis.", "redis:7") }),
  }),

  global: anything("Reserved for parent charts; this chart ignores it."),
});
export type Values = z.infer<typeof Values>;
