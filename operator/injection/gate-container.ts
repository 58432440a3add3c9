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
import type { Container, Pod } from "./pod.ts";
import { parseQuantity } from "./quantity.ts";

/** User id of the Postern images, as a number because the images define no name for it. */
const UID = 65_532;

const TOKEN_DIR = "/var/run/secrets/postern";
const TLS_DIR = "/var/run/secrets/postern-tls";
const SNAPSHOT_DIR = "/var/lib/postern";
/**
 * Size limit of the snapshot volume, for two files of 16 MiB (the current and the next one) and a margin, because the kubelet evicts a pod
 * that exceeds the limit.
 */
const SNAPSHOT_SIZE = "40Mi";
/** Lifetime of the token. The kubelet renews a token when 20 % of its lifetime remains. */
const TOKEN_SECONDS = 3_600;

/** HTTP header of the preStop request by which the kubelet tells the gate that the pod is terminating. */
const HOOK_HEADER = "Postern-Hook-Token";

export interface GateSettings {
  readonly config: InjectionConfig;
  readonly resources: GateResources;
  /** Protocol between the gate and the app. */
  readonly protocol: "http1" | "h2c";
  /** Secret in the pod's namespace with the server certificate of the gate; `undefined` if the gate does not use TLS. */
  readonly tlsSecret: string | undefined;
  /** Full name of the policy, in the form `<cluster>/<namespace>/<name>`. */
  readonly policy: string;
  readonly workspaceId: string;
  readonly upstreamPort: number;
  readonly gatePort: number;
  readonly adminPort: number;
  /** Names of the gate's port: those that the gate takes over from the app, or a name of its own. */
  readonly portNames: readonly string[];
  readonly probes: GateProbes;
  /**
   * Token that the kubelet sends when it reports the pod's termination to the gate. Clients of the pod do not have it, so they cannot
   * report a termination.
   */
  readonly hookToken: string;
  /** Key that encrypts the gate's snapshot on the pod's disk; unique to each pod. */
  readonly snapshotKey: string;
}

/**
 * Builds the gate as a native sidecar, which starts before the app, ends after the app, and does not keep a Job from completing. The app
 * starts as soon as the gate's process responds, even before the gate has a policy. A missing policy thus makes the pod unready, but the
 * app still starts.
 */
export function gateContainer(settings: GateSettings): Container {
  const { config, resources, tlsSecret, gatePort, adminPort, portNames, hookToken } = settings;
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
        httpGet: { ...admin("/drain").httpGet, httpHeaders: [{ name: HOOK_HEADER, value: hookToken }] },
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
      ...(tlsSecret === undefined ? [] : [{ name: TLS_VOLUME, mountPath: TLS_DIR, readOnly: true as const }]),
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
  protocol,
  tlsSecret,
  policy,
  workspaceId,
  upstreamPort,
  ...rest
}: GateSettings): Container["env"] {
  const plain: Record<string, string> = {
    NODE_OPTIONS: nodeOptionsFor(rest.resources.memoryLimit),
    ...config.env,
    // The kubelet fills in the name of the pod, which is known only after the pod is created.
    POSTERN_POD: "$(POD_NAMESPACE)/$(POD_NAME)",
    POSTERN_WORKSPACE: workspaceId,
    POSTERN_POLICY: policy,
    POSTERN_UPSTREAM: `http://127.0.0.1:${upstreamPort}`,
    ...(protocol === "http1" ? {} : { POSTERN_UPSTREAM_PROTOCOL: protocol }),
    ...(tlsSecret === undefined
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

/** Escapes `$(NAME)`, which the kubelet would otherwise replace with the value of the variable. */
const literally = (text: string): string => text.replaceAll("$(", "$$$$(");

export const snapshotVolume = { name: SNAPSHOT_VOLUME, emptyDir: { sizeLimit: SNAPSHOT_SIZE } };

export const tokenVolume = (audience: string) => ({
  name: TOKEN_VOLUME,
  projected: {
    sources: [{ serviceAccountToken: { audience, expirationSeconds: TOKEN_SECONDS, path: "token" } }],
  },
});

/** Volume with the files of a `kubernetes.io/tls` Secret. The kubelet updates the files, and the gate reloads them on change. */
export const tlsVolume = (secretName: string) => ({ name: TLS_VOLUME, secret: { secretName } });

/**
 * Builds the init container that redirects packets for the guarded port to the gate. The rule exempts the loopback interface, over which
 * the gate reaches the app. IPv6 is redirected too if the pod has it, because clients could otherwise bypass the gate.
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

/** Minimum memory limit. A gate with 100 keys and four clients that send large bodies needs this much; with 48Mi, the kernel kills it. */
const MEMORY_MIN = "64Mi";

/**
 * Reads the gate's resources from the pod's annotations, with the configured defaults. If the pod has pod-level requests or limits, the
 * gate gets no requests of its own, and its limits stay within those of the pod, because Kubernetes rejects a container whose limits exceed
 * them.
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
  // A default that conflicts with a value in the pod's annotations is adjusted.
  const memoryLimit = bounded(given.memoryLimit ?? larger(resources.memoryRequest, resources.memoryLimit), "memory");
  if ((parseQuantity(memoryLimit) ?? 0) < (parseQuantity(MEMORY_MIN) ?? 0)) {
    const source =
      memoryLimit === given.memoryLimit
        ? `the annotation ${RESOURCE_ANNOTATIONS.memoryLimit}`
        : memoryLimit === limits.memory
          ? "spec.resources.limits.memory"
          : "the operator's memory limit for gates (--gate-resources)";
    return { refused: `${source} is ${memoryLimit}, but a gate requires at least ${MEMORY_MIN}.` };
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

const MIB = 1024 * 1024;
/** Minimum heap size: a gate uses about 20 MiB of heap before it caches the first key. */
const HEAP_MIB_MIN = 40;
const HEAP_SHARE = 0.25;

/**
 * Returns the Node options of a gate with this memory limit. By default, V8 sizes its heap by the machine and collects late, so the kernel
 * would kill the process. Most of a gate's memory is outside the heap: about 40 MiB for the process, 0.2 MiB per large body in flight, and
 * up to 64 MiB of completed bodies with chunked coding that V8 has not collected yet. The cache limits depend on the heap
 * (sidecar/cache-limits.ts). With a semi-space of 1 MiB a request takes 8 to 16 % more CPU time than with 4 MiB; a larger semi-space saves nothing.
 */
export function nodeOptionsFor(memoryLimit: string): string {
  const heapMib = Math.max(HEAP_MIB_MIN, Math.floor((HEAP_SHARE * (parseQuantity(memoryLimit) ?? 0)) / MIB));
  const semiSpaceMib = Math.min(4, Math.floor(heapMib / 20));
  return `--max-old-space-size=${heapMib} --max-semi-space-size=${semiSpaceMib}`;
}
