import type { GateProbes } from "../../core/gates/probes.ts";
import type { GateResources, InjectionConfig } from "./config.ts";
import {
  GATE_CONTAINER,
  REDIRECT_CONTAINER,
  RESOURCE_ANNOTATIONS,
  SNAPSHOT_VOLUME,
  TLS_VOLUME,
  TOKEN_VOLUME,
} from "./names.ts";
import { nodeOptionsFor } from "./node-options.ts";
import type { Container, Pod } from "./pod.ts";
import type { GateProtocols } from "./protocols.ts";
import { parseQuantity } from "./quantity.ts";

/** The user of our images. It has no name in any of them. */
const UID = 65_532;

const TOKEN_DIR = "/var/run/secrets/postern";
const TLS_DIR = "/var/run/secrets/postern-tls";
const SNAPSHOT_DIR = "/var/lib/postern";
/** Two files of 16 MiB: the one that is there and the next one. Kubelet ends a pod that exceeds it, so it is more than a gate writes. */
const SNAPSHOT_SIZE = "40Mi";
/** Kubelet renews a token when a fifth of this is left. */
const TOKEN_SECONDS = 3_600;

/** Header of the hook by which kubelet tells the gate that the pod ends. */
const HOOK_HEADER = "Postern-Hook-Token";

export interface GateSettings {
  readonly config: InjectionConfig;
  readonly resources: GateResources;
  readonly protocols: GateProtocols;
  /** `<cluster>/<namespace>/<name>` */
  readonly policy: string;
  readonly workspaceId: string;
  readonly upstreamPort: number;
  readonly gatePort: number;
  readonly adminPort: number;
  /** Names of the gate's port: those that it takes over, or its own. */
  readonly portNames: readonly string[];
  readonly probes: GateProbes;
  /** Lets kubelet, and no client of the pod, say that the pod ends. */
  readonly hookToken: string;
  /** Seals what the gate keeps on the pod's disk; another one in each pod. */
  readonly snapshotKey: string;
}

/**
 * The gate as a native sidecar: it starts before the app, ends after it, and does not keep a Job from finishing. The app starts when the
 * gate's process answers, not when it has a policy, so that a policy that is missing makes the pod unready and nothing else.
 */
export function gateContainer(settings: GateSettings): Container {
  const { config, resources, protocols, gatePort, adminPort, portNames, hookToken } = settings;
  const admin = (path: string) => ({ httpGet: { path, port: adminPort, scheme: "HTTP" } });
  return {
    name: GATE_CONTAINER,
    image: config.gateImage,
    ...(config.imagePullPolicy === undefined ? {} : { imagePullPolicy: config.imagePullPolicy }),
    restartPolicy: "Always",
    ...(config.secret === undefined ? {} : { envFrom: [{ secretRef: { name: config.secret } }] }),
    env: environmentOf(settings),
    ports: [
      ...portNames.map((name) => ({ name, containerPort: gatePort, protocol: "TCP" })),
      { name: "postern-admin", containerPort: adminPort, protocol: "TCP" },
    ],
    startupProbe: { ...admin("/livez"), periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 120 },
    livenessProbe: { ...admin("/livez"), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
    readinessProbe: { ...admin("/readyz"), periodSeconds: 2, timeoutSeconds: 2, failureThreshold: 2 },
    lifecycle: {
      preStop: {
        httpGet: { ...admin("/pod-ends").httpGet, httpHeaders: [{ name: HOOK_HEADER, value: hookToken }] },
      },
    },
    resources: {
      requests: { cpu: resources.cpuRequest, memory: resources.memoryRequest },
      limits: {
        ...(resources.cpuLimit === undefined ? {} : { cpu: resources.cpuLimit }),
        memory: resources.memoryLimit,
      },
    },
    volumeMounts: [
      { name: SNAPSHOT_VOLUME, mountPath: SNAPSHOT_DIR },
      ...(config.tokenAudience === undefined
        ? []
        : [{ name: TOKEN_VOLUME, mountPath: TOKEN_DIR, readOnly: true as const }]),
      ...(protocols.tlsSecret === undefined ? [] : [{ name: TLS_VOLUME, mountPath: TLS_DIR, readOnly: true as const }]),
    ],
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
      privileged: false,
      readOnlyRootFilesystem: true,
      runAsGroup: UID,
      runAsNonRoot: true,
      runAsUser: UID,
      seccompProfile: { type: "RuntimeDefault" },
    },
  };
}

const fromField = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });

function environmentOf({
  config,
  protocols,
  policy,
  workspaceId,
  upstreamPort,
  ...rest
}: GateSettings): Container["env"] {
  const plain: Record<string, string> = {
    NODE_OPTIONS: nodeOptionsFor(rest.resources.memoryLimit),
    ...config.env,
    // Names of a pod are known only when it exists; kubelet puts them in.
    POSTERN_POD: "$(POD_NAMESPACE)/$(POD_NAME)",
    POSTERN_WORKSPACE: workspaceId,
    POSTERN_POLICY: policy,
    POSTERN_UPSTREAM: `http://127.0.0.1:${upstreamPort}`,
    ...(protocols.upstream === "http1" ? {} : { POSTERN_UPSTREAM_PROTOCOL: protocols.upstream }),
    ...(protocols.tlsSecret === undefined
      ? {}
      : { POSTERN_TLS_CERT_FILE: `${TLS_DIR}/tls.crt`, POSTERN_TLS_KEY_FILE: `${TLS_DIR}/tls.key` }),
    POSTERN_SIDECAR_PORT: String(rest.gatePort),
    POSTERN_ADMIN_PORT: String(rest.adminPort),
    POSTERN_HOOK_TOKEN: rest.hookToken,
    POSTERN_SNAPSHOT_DIR: SNAPSHOT_DIR,
    POSTERN_SNAPSHOT_KEY: rest.snapshotKey,
    ...(rest.probes.length === 0 ? {} : { POSTERN_PROBES: literally(JSON.stringify(rest.probes)) }),
    ...(config.tokenAudience === undefined ? {} : { POSTERN_TOKEN_FILE: `${TOKEN_DIR}/token` }),
  };
  return [
    fromField("POD_NAMESPACE", "metadata.namespace"),
    fromField("POD_NAME", "metadata.name"),
    ...Object.entries(plain).map(([name, value]) => ({ name, value })),
  ];
}

/** Kubelet would put the value of a variable in place of `$(NAME)`. */
const literally = (text: string): string => text.replaceAll("$(", "$$$$(");

export const snapshotVolume = { name: SNAPSHOT_VOLUME, emptyDir: { sizeLimit: SNAPSHOT_SIZE } };

export const tokenVolume = (audience: string) => ({
  name: TOKEN_VOLUME,
  projected: {
    sources: [{ serviceAccountToken: { audience, expirationSeconds: TOKEN_SECONDS, path: "token" } }],
  },
});

/** The files of a Secret of the type `kubernetes.io/tls`. Kubelet brings new ones, and the gate follows them. */
export const tlsVolume = (secretName: string) => ({ name: TLS_VOLUME, secret: { secretName } });

/**
 * Sends what arrives at the guarded port to the gate. The gate reaches the app over the loopback device, where the rule does not
 * apply. IPv6 is redirected wherever the pod has it: a rule for IPv4 alone would leave a way around the gate.
 */
export function redirectContainer(image: string, { from, to }: { from: number; to: number }): Container {
  const rule = `-t nat -A PREROUTING -p tcp --dport ${from} -j REDIRECT --to-ports ${to}`;
  return {
    name: REDIRECT_CONTAINER,
    image,
    command: ["sh", "-ec", `iptables ${rule}\nif [ -s /proc/net/if_inet6 ]; then ip6tables ${rule}; fi`],
    resources: { requests: { cpu: "10m", memory: "16Mi" }, limits: { memory: "64Mi" } },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"], add: ["NET_ADMIN", "NET_RAW"] },
      privileged: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: false,
      runAsUser: 0,
      runAsGroup: 0,
      seccompProfile: { type: "RuntimeDefault" },
    },
  };
}

/** What a gate with 100 keys and four clients that send large bodies needs; with 48Mi the kernel kills it. */
const MEMORY_MIN = "64Mi";

/**
 * Reads the resources of the gate from the pod's annotations; the rest is as configured. Where the pod has requests or limits for all its
 * containers together, the gate requests nothing of its own and its limits stay within those of the pod: Kubernetes refuses a container
 * that exceeds them, and they bound what the gate can use.
 */
export function resourcesOf(
  { metadata: { annotations = {} }, spec }: Pod,
  defaults: GateResources,
): GateResources | { readonly refused: string } {
  const given: Partial<Record<keyof GateResources, string>> = {};
  for (const [name, annotation] of Object.entries(RESOURCE_ANNOTATIONS)) {
    const text = annotations[annotation];
    if (text === undefined) continue;
    if (parseQuantity(text) === undefined)
      return { refused: `the annotation ${annotation} is not a quantity such as 10m or 64Mi.` };
    given[name as keyof GateResources] = text;
  }
  const { requests = {}, limits = {} } = spec.resources ?? {};
  const shares = (resource: "cpu" | "memory") => (requests[resource] ?? limits[resource]) !== undefined;
  const bounded = (limit: string, resource: "cpu" | "memory") => smaller(limit, limits[resource] ?? limit);
  const resources = { ...defaults, ...given };
  // A default that contradicts what the pod asks for gives way to it.
  const memoryLimit = bounded(given.memoryLimit ?? larger(resources.memoryRequest, resources.memoryLimit), "memory");
  if ((parseQuantity(memoryLimit) ?? 0) < (parseQuantity(MEMORY_MIN) ?? 0)) {
    const source =
      memoryLimit === given.memoryLimit
        ? `the annotation ${RESOURCE_ANNOTATIONS.memoryLimit}`
        : memoryLimit === limits.memory
          ? "spec.resources.limits.memory"
          : "the memory limit that the operator gives to gates (--gate-resources)";
    return { refused: `${source} is ${memoryLimit}, and a gate needs at least ${MEMORY_MIN}.` };
  }
  const memoryRequest = given.memoryRequest ?? (shares("memory") ? "0" : smaller(resources.memoryRequest, memoryLimit));
  const cpuLimit = resources.cpuLimit === undefined ? undefined : bounded(resources.cpuLimit, "cpu");
  const cpuRequest =
    given.cpuRequest ??
    (shares("cpu") ? "0" : cpuLimit === undefined ? resources.cpuRequest : smaller(resources.cpuRequest, cpuLimit));
  return { ...resources, cpuRequest, cpuLimit, memoryRequest, memoryLimit };
}

const larger = (a: string, b: string): string => ((parseQuantity(a) ?? 0) > (parseQuantity(b) ?? 0) ? a : b);
const smaller = (a: string, b: string): string => (larger(a, b) === a ? b : a);
