import * as z from "zod";

/*
 * Schema of the pod fields that injection reads or changes. Unknown fields are preserved, because newer Kubernetes versions add fields. The
 * shape is validated, because any client in the cluster can call the webhook.
 */

const PortRef = z.union([z.string(), z.int()]);
export type PortRef = z.output<typeof PortRef>;

const ContainerPort = z.looseObject({
  name: z.string().optional(),
  containerPort: z.int(),
  protocol: z.string().optional(),
  hostPort: z.int().optional(),
});
export type ContainerPort = z.output<typeof ContainerPort>;

/** Action of a probe or hook. Members that are not declared here, such as `exec`, refer to no port. */
export const Handler = z.looseObject({
  httpGet: z
    .looseObject({
      path: z.string().optional(),
      port: PortRef,
      host: z.string().optional(),
      scheme: z.string().optional(),
      httpHeaders: z.array(z.looseObject({ name: z.string(), value: z.string() })).optional(),
    })
    .optional(),
  tcpSocket: z.looseObject({ port: PortRef, host: z.string().optional() }).optional(),
  grpc: z.looseObject({ port: z.int(), service: z.string().nullish() }).optional(),
});
export type Handler = z.output<typeof Handler>;

const Probe = Handler.extend({ timeoutSeconds: z.int().optional() });
export type Probe = z.output<typeof Probe>;

export const PROBES = ["startupProbe", "livenessProbe", "readinessProbe"] as const;
export type ProbeName = (typeof PROBES)[number];

export const HOOKS = ["postStart", "preStop"] as const;

const Quantities = z.record(z.string(), z.string()).optional();
const Resources = z.looseObject({ requests: Quantities, limits: Quantities }).optional();

const Container = z.looseObject({
  name: z.string(),
  resources: Resources,
  restartPolicy: z.string().optional(),
  ports: z.array(ContainerPort).optional(),
  startupProbe: Probe.optional(),
  livenessProbe: Probe.optional(),
  readinessProbe: Probe.optional(),
  lifecycle: z.looseObject({ postStart: Handler.optional(), preStop: Handler.optional() }).optional(),
  env: z.array(z.looseObject({ name: z.string(), value: z.string().optional() })).optional(),
  volumeMounts: z.array(z.looseObject({ name: z.string() })).optional(),
});
export type Container = z.output<typeof Container>;

export const Pod = z.looseObject({
  metadata: z.looseObject({
    name: z.string().optional(),
    generateName: z.string().optional(),
    labels: z.record(z.string(), z.string()).optional(),
    annotations: z.record(z.string(), z.string()).optional(),
  }),
  spec: z.looseObject({
    initContainers: z.array(Container).optional(),
    containers: z.array(Container),
    volumes: z.array(z.looseObject({ name: z.string() })).optional(),
    hostNetwork: z.boolean().optional(),
    /** Pod-level resources, which limit the resources of each container. */
    resources: Resources,
    os: z.looseObject({ name: z.string() }).optional(),
    terminationGracePeriodSeconds: z.int().optional(),
  }),
});
export type Pod = z.output<typeof Pod>;

/** Returns the containers that run as long as the app: regular containers and native sidecars. */
export const runningContainers = ({ spec }: Pod): readonly Container[] => [
  ...spec.containers,
  ...(spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always"),
];

export const isTcp = ({ protocol = "TCP" }: ContainerPort): boolean => protocol === "TCP";
