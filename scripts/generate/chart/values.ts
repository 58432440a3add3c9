import { z } from "zod";
import { PERSON_ROLES } from "../../../core/permissions/person-roles.ts";

/*
 * The values of the chart charts/postern, each with its default and what it means. `values.yaml`, `values.schema.json` and the table of its
 * README are made from them.
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
    .describe("What a pod asks for, and the most it may take.");

const image = (repository: string, what = "The image.") =>
  group(what, {
    repository: text("Image name, appended to `image.registry`.", repository),
    tag: text("Image tag; `image.tag` when empty."),
    digest: text("Image digest, `sha256:…`; overrides the tag."),
  });

/** An address with a password, by value or, better, from a Secret. */
const address = (what: string, example: string) => ({
  url: text(`${what} by value, such as \`${example}\`. The chart makes a Secret of it.`),
  existingSecret: text("A Secret that has it instead. Its change is noticed without the chart."),
  existingSecretKey: text("Key of that Secret with the address.", "url"),
});

/** What every Deployment has. */
const pods = {
  podAnnotations: labels("Additional annotations of the pods."),
  podLabels: labels("Additional labels of the pods."),
  nodeSelector: labels("Node labels that the pods require."),
  tolerations: list("Tolerations of the pods."),
  affinity: anything("Affinity of the pods."),
  priorityClassName: text("Priority class of the pods."),
  topologySpread: switchedOn("Whether the pods are spread over nodes and zones, as far as that is possible."),
  extraArgs: z.array(z.string()).default([]).describe("Additional options of the command: docs/reference/cli.md."),
  extraEnv: list("Additional environment variables."),
  extraVolumes: list("Additional volumes of the pods."),
  extraVolumeMounts: list("Mounts of the additional volumes in the container."),
};

const disruption = group("A PodDisruptionBudget.", {
  enabled: switchedOn("Whether the chart creates a PodDisruptionBudget when there are several replicas."),
  maxUnavailable: z
    .union([z.int().min(1), z.string()])
    .default(1)
    .describe("How many pods may be unavailable at the same time."),
});

const account = (what: string) =>
  group(what, {
    create: switchedOn("Whether the chart creates the ServiceAccount."),
    name: text("Name of the ServiceAccount; derived from the release name when empty."),
    annotations: labels("Annotations of the ServiceAccount."),
  });

export const Values = z.strictObject({
  nameOverride: text("Overrides the chart name in resource names."),
  fullnameOverride: text("Overrides the release and chart name in resource names."),
  commonLabels: labels("Labels of every object."),

  image: group("What all images have in common.", {
    registry: text("Registry, and the path in it: `registry.example/postern`."),
    tag: text("Tag; the chart's appVersion when empty."),
    pullPolicy: z.enum(["IfNotPresent", "Always", "Never"]).default("IfNotPresent").describe("When images are pulled."),
    pullSecrets: z
      .array(z.strictObject({ name: z.string() }))
      .default([])
      .describe("Secrets for the registry."),
  }),

  apiServer: group("Serves the HTTP API, projects changes to Redis, stores usage events.", {
    image: image("postern-api-server"),
    replicas: count("Number of replicas. Ignored when `apiServer.autoscaling.enabled` is true.", 2),
    resources: resources("100m", "256Mi", "512Mi"),
    port: count("Port that the api-server listens on in its pod.", 8080, 1),
    adminPort: count(
      "Port of the metrics and of the page that shows the API, which customers of the API need not reach.",
      8004,
      1,
    ),
    tls: group("Serves the API by TLS; without it an ingress has to.", {
      existingSecret: text(
        "A Secret with `tls.crt` and `tls.key`, for `<release>-api-server.<namespace>.svc`. It is followed. No TLS when empty.",
      ),
      caKey: text(
        "Key of that Secret with the authority, for the operator. Empty when the certificate is of a public one, which gates need that get their user of Redis from the api-server.",
      ),
    }),
    service: group("The Service.", {
      type: z.enum(["ClusterIP", "NodePort", "LoadBalancer"]).default("ClusterIP").describe("Type of the Service."),
      port: count("Port of the Service.", 80, 1),
      annotations: labels("Annotations of the Service."),
    }),
    autoscaling: group("A HorizontalPodAutoscaler.", {
      enabled: switchedOff("Whether the chart creates a HorizontalPodAutoscaler."),
      minReplicas: count("Minimum number of replicas.", 2, 1),
      maxReplicas: count("Maximum number of replicas.", 6, 1),
      targetCPUUtilizationPercentage: count("Target CPU utilization, in percent of the requested CPU.", 70, 1),
    }),
    podDisruptionBudget: disruption,
    serviceAccount: account("The ServiceAccount."),
    terminationGracePeriodSeconds: count("How many seconds a pod may take to end.", 30, 1),
    encryptionKeys: group(
      "Keys that encrypt recoverable API keys, `ID:BASE64` a line; the first encrypts, all decrypt.",
      {
        existingSecret: text("A Secret that has them; no recoverable keys when empty."),
        existingSecretKey: text("Key of that Secret with the encryption keys.", "keys"),
      },
    ),
    dashboard: group("The dashboard, at `/dashboard/` of the API's port.", {
      enabled: switchedOn("Whether the api-server serves the dashboard."),
      url: text(
        "Where browsers reach the dashboard: `https://postern.example.com`. Empty: people sign in through `kubectl port-forward`, or by the api-server's own TLS.",
      ),
      oidc: group("An OpenID provider with which people sign in; without one they do with links.", {
        issuer: text("URL of the provider, as it names itself; requires `url`. No provider when empty."),
        clientId: text(
          "Client id of the dashboard at the provider, which sends browsers back to `<url>/dashboard/auth/callback`.",
        ),
        existingSecret: text("A Secret with the client's secret, which is followed; a public client when empty."),
        existingSecretKey: text("Key of that Secret with the client's secret.", "client-secret"),
        scopes: text("What is asked of the provider.", "openid profile email"),
        groupsClaim: text("The claim that has a person's groups.", "groups"),
      }),
      groups: z
        .record(z.string(), z.record(z.string(), z.enum(PERSON_ROLES)))
        .default({})
        .describe("Roles of the provider's groups: by group, by workspace (or `*`). A change holds at once."),
    }),
    ...pods,
  }),

  operator: group("Reconciles the manifests.", {
    image: image("postern-operator"),
    replicas: count("Number of replicas; one of them works, the others wait.", 2),
    resources: resources("50m", "96Mi", "128Mi"),
    adminPort: count("Port of the probes and metrics.", 8002, 1),
    clusterName: text(
      "Name of this cluster among all that share the database, part of the manager's name of each object. Never change it.",
    ),
    podDisruptionBudget: disruption,
    serviceAccount: account("The ServiceAccount."),
    terminationGracePeriodSeconds: count("How many seconds a pod may take to end.", 30, 1),
    rootKey: group("The root key with which it calls the API.", {
      existingSecret: text("A Secret that has it; a Job makes one with exactly what the operator needs when empty."),
      existingSecretKey: text("Key of that Secret with the root key.", "rootKey"),
      workspace: text("Workspace of the root key that the Job makes; `default` when empty."),
    }),
    rootKeys: group("Several workspaces instead of one: docs/multi-tenancy.md.", {
      existingSecret: text("A Secret with a root key for each workspace, under the workspace's name. It is followed."),
      defaultWorkspace: text("The workspace of namespaces that name none; they are refused when empty."),
    }),
    tenancy: anything("The workspace of each namespace, and which names it may use: docs/multi-tenancy.md."),
    ...pods,
  }),

  controllerClass: text(
    "Class of this release's operator, of several in a cluster: it has the objects and pods whose label `postern.dev/controller-class` names it; those without the label when empty.",
  ),
  otherControllerClasses: z
    .array(z.string())
    .default([])
    .describe(
      "Classes of the other releases that inject gates, for the release without a class: it refuses guarded pods of any other class.",
    ),
  injection: group(
    "The webhook that puts a gate into each guarded pod: docs/injection.md. There is none with scopedNamespaces, because webhooks are of the whole cluster.",
    {
      enabled: switchedOn("Whether gates are injected."),
      image: image("postern-sidecar"),
      redirectImage: image(
        "postern-redirect",
        "Image with sh, iptables and ip6tables, for policies with `interception: Redirect`.",
      ),
      port: count("Port of the operator for the webhook.", 19_443, 1),
      certManager: group("The webhook's certificate by cert-manager; the operator makes one when switched off.", {
        enabled: switchedOff("Whether cert-manager, which must be installed, issues the certificate."),
        issuerRef: anything("The issuer, `kind` and `name`; the chart makes an authority of its own when empty."),
      }),
      gatePort: count("Port of the gates; the next free one in pods that use it themselves.", 19_080, 1),
      gateAdminPort: count(
        "Port of the gates for probes and metrics; the next free one in pods that use it themselves.",
        19_081,
        1,
      ),
      gateResources: resources("10m", "64Mi", "320Mi"),
      preStopSleepSeconds: count("How long apps of guarded pods without a preStop hook sleep before their end.", 5),
      redisUrl: text(
        "Address of Redis for gates, without a user; that of `redis.url` when empty. Each gate gets a user of its own for some hours.",
      ),
      eventsRedisUrl: text("Address of the Redis for usage events, without a user, where it is another one."),
      existingSecret: text(
        "A Secret in each guarded pod's namespace with the gates' environment instead, such as REDIS_URL with a password: for a Redis whose users the api-server may not make.",
      ),
    },
  ),

  extAuth: group("Gates without an app, for gateways to ask: docs/gateways.md. They decide by one policy.", {
    enabled: switchedOff("Whether the chart creates gates for gateways."),
    image: image("postern-sidecar"),
    replicas: count("Number of replicas.", 2),
    resources: resources("50m", "96Mi", "320Mi"),
    workspace: text("Id of the policy's workspace: `status.workspaceId` of the ApiKeyPolicy."),
    policy: text("The ApiKeyPolicy by which they decide, `NAMESPACE/NAME` in this cluster; or the id of a policy."),
    existingSecret: text(
      "A Secret with the `REDIS_URL` of the workspace's user, which `postern redis-acl` makes; and with `EVENTS_REDIS_URL`, where there is one. With `dev.enabled` the Redis of the release when empty.",
    ),
    authorizePort: count("Port of the HTTP ext-auth endpoint, `/authorize`; closed with 0.", 8002),
    grpcPort: count(
      "Port of the gRPC ext-auth endpoint: ext_authz and the rate limit service of Envoy; closed with 0.",
      8003,
    ),
    adminPort: count("Port of the probes and metrics.", 8001, 1),
    trustedGateways: z
      .array(z.string())
      .default([])
      .describe(
        "Addresses and blocks of the pods of the gateways, which alone may ask. Not looked at with `extAuth.tls.clientCaKey`, else needed.",
      ),
    tls: group("Gateways ask by TLS; plainly without it.", {
      existingSecret: text(
        "A Secret with `tls.crt` and `tls.key`, for `<release>-ext-auth.<namespace>.svc`. It is followed. No TLS when empty.",
      ),
      clientCaKey: text(
        "Key of that Secret with the authority of the gateways' certificates: only gateways with such a certificate may ask.",
      ),
    }),
    service: group("The Service.", {
      headless: switchedOff(
        "Whether gateways get the addresses of all pods, and balance by themselves, as Envoy does well.",
      ),
      annotations: labels("Annotations of the Service."),
    }),
    podDisruptionBudget: disruption,
    serviceAccount: account("The ServiceAccount, whose token is not mounted."),
    terminationGracePeriodSeconds: count("How many seconds a pod may take to end.", 30, 1),
    ...pods,
  }),

  apiKeyNamespaces: z
    .array(z.string())
    .default([])
    .describe(
      "Namespaces that may have ApiKeys: a Role in each lets the operator write their Secrets, without reading what is in them. The namespaces must exist.",
    ),

  scopedNamespaces: z
    .array(z.string())
    .default([])
    .describe("Watch these namespaces only. Then there is no ClusterRole: a Role in each. The namespaces must exist."),

  database: group("Postgres, 15 or later.", {
    ...address("Address of Postgres", "postgres://user:password@host/database"),
    migration: group(
      "The database's user that owns the schema, for the Job that migrates it; the same user when empty.",
      {
        ...address("Address of Postgres with that user", "postgres://owner:password@host/database"),
      },
    ),
  }),
  redis: group("Redis, 7 or later.", address("Address of Redis", "rediss://user:password@host:6379")),
  eventsRedis: group(
    "Another Redis for usage events; the same when empty.",
    address("Address of that Redis", "redis://host:6379"),
  ),
  analytics: group(
    "ClickHouse for usage events; they are kept in Postgres when empty.",
    address("Address of ClickHouse", "https://user:password@host:8443/database"),
  ),
  redisPrefix: text("The first part of every key in Redis.", "ps"),
  region: text("Name of the region, recorded with each event."),
  docsUrl: z
    .string()
    .regex(/^$|^https?:\/\/[^\s,"']+$/)
    .default("")
    .describe(
      "URL before `/errors/<kind>` in the type of an error of the API and of gates, such as `https://docs.example`; `https://postern.dev` when empty. Each api-server has these pages at its own `/errors/<kind>`.",
    ),

  migrations: group("A Job that brings the database to this version's schema.", {
    enabled: switchedOn("Whether the chart creates the Job."),
    waitSeconds: count("How many seconds the Job tries again while the database does not answer.", 300),
    resources: resources("50m", "128Mi", "256Mi"),
  }),

  crds: group("The kinds of postern.dev.", {
    enabled: switchedOn("Whether the chart contains the CRDs."),
    keep: switchedOn("Whether the CRDs stay when the release is uninstalled. Deleting a CRD deletes all its objects."),
  }),
  rbac: group("Rights.", {
    create: switchedOn("Whether the chart makes the roles that its parts need."),
    personas: switchedOn("Whether the kinds are added to the roles view, edit and admin of the cluster."),
  }),

  runAsUser: z
    .union([z.int().min(1), z.null()])
    .default(65532)
    .describe("User of all pods; null lets the cluster choose, as OpenShift wants it."),

  networkPolicy: group("NetworkPolicies for the pods of this chart.", {
    enabled: switchedOff("Whether the chart creates NetworkPolicies."),
    apiFrom: list("Who may call the API, as `from` of a NetworkPolicy; all pods of the cluster when empty."),
    extAuthFrom: list(
      "Who may ask the ext-auth endpoints, as `from` of a NetworkPolicy; all pods of the cluster when empty.",
    ),
    metricsFrom: list("Who may read metrics; all pods of the cluster when empty."),
  }),
  monitoring: group("For the Prometheus operator and Grafana.", {
    serviceMonitor: group("ServiceMonitors.", {
      enabled: switchedOff("Whether the chart creates ServiceMonitors."),
      interval: text("How often metrics are read.", "30s"),
      labels: labels("Labels by which Prometheus finds the ServiceMonitors."),
    }),
    podMonitor: group("A PodMonitor for the gates in all pods.", {
      enabled: switchedOff("Whether the chart creates the PodMonitor."),
      interval: text("How often metrics are read.", "30s"),
      labels: labels("Labels by which Prometheus finds the PodMonitor."),
    }),
    prometheusRule: group("Alerts.", {
      enabled: switchedOff("Whether the chart creates the alerts (a PrometheusRule)."),
      labels: labels("Labels by which Prometheus finds the alerts."),
      runbookUrl: text(
        "URL of the page of the alerts, such as your copy of docs/operations/alerts.md. The `runbook_url` of an alert is this, `#` and the name of the alert in lower case.",
        "https://postern.dev/docs/operations/alerts",
      ),
    }),
    dashboards: group("ConfigMaps with dashboards.", {
      enabled: switchedOff("Whether the chart creates the ConfigMaps."),
      labels: labels('Labels by which Grafana finds the ConfigMaps; `grafana_dashboard: "1"` is always there.'),
    }),
  }),

  dev: group("A throw-away Postgres and Redis inside the release, without a volume: for trying it out.", {
    enabled: switchedOff(
      "Whether the chart creates this Postgres and this Redis. They lose their data when their pods end.",
    ),
    password: text("Password of this Postgres and this Redis.", "postern"),
    postgres: group("The Postgres.", { image: text("Image of Postgres.", "postgres:18") }),
    redis: group("The Redis.", { image: text("Image of Redis.", "redis:7") }),
  }),

  global: anything("Read by charts that include this one; nothing of it is used here."),
});
export type Values = z.infer<typeof Values>;
