/** Injection settings, which are the same for all pods of a cluster. */
export interface InjectionConfig {
  /** Image of the gate; its entry point runs the sidecar. */
  readonly gateImage: string;
  readonly imagePullPolicy?: "Always" | "IfNotPresent" | "Never" | undefined;
  /** Image with `sh`, `iptables` and `ip6tables` for `interception: Redirect`. If `undefined`, pods with this interception are rejected. */
  readonly redirectImage?: string | undefined;
  /** Preferred port of the gate. If the pod already uses it, the gate takes the next free port. */
  readonly gatePort: number;
  readonly adminPort: number;
  readonly resources: GateResources;
  /** Name of a Secret in the pod's namespace that provides the gate's environment variables, such as REDIS_URL. */
  readonly secret?: string | undefined;
  /** Additional environment variables of every gate. */
  readonly env: Readonly<Record<string, string>>;
  /** Audience of the ServiceAccount token with which a gate authenticates to the api-server. If `undefined`, no token is mounted. */
  readonly tokenAudience?: string | undefined;
  /** Duration of the `preStop` sleep that injection adds to apps without a hook; 0 if the cluster does not support the sleep action. */
  readonly preStopSeconds: number;
}

export interface GateResources {
  readonly cpuRequest: string;
  readonly cpuLimit?: string | undefined;
  readonly memoryRequest: string;
  readonly memoryLimit: string;
}

export const DEFAULT_RESOURCES: GateResources = { cpuRequest: "10m", memoryRequest: "64Mi", memoryLimit: "320Mi" };
/** Default port of the gate. It is below the ephemeral port range, and no common server uses it. */
export const DEFAULT_GATE_PORT = 19_080;
export const DEFAULT_GATE_ADMIN_PORT = 19_081;
export const DEFAULT_PRE_STOP_SECONDS = 5;
