/** Injection settings, the same for all pods of a cluster. */
export interface InjectionConfig {
  /** Image of the gate; its entry point runs the sidecar. */
  readonly gateImage: string;
  readonly imagePullPolicy?: "Always" | "IfNotPresent" | "Never" | undefined;
  /** Image with `sh`, `iptables` and `ip6tables` for `interception: Redirect`. Without one, pods that need it are rejected. */
  readonly redirectImage?: string | undefined;
  /** Preferred port; the next free one is used if the pod already uses it. */
  readonly gatePort: number;
  readonly adminPort: number;
  readonly resources: GateResources;
  /** Name of a Secret in the pod's namespace that provides the gate's environment variables, such as REDIS_URL. */
  readonly secret?: string | undefined;
  /** Additional environment variables of every gate. */
  readonly env: Readonly<Record<string, string>>;
  /** Audience of the ServiceAccount token that gates present to the api-server. Without it, no token is mounted. */
  readonly tokenAudience?: string | undefined;
  /**
   * Duration of the `preStop` sleep that is added to apps without a hook of their own; 0 if the cluster does not support the sleep action.
   */
  readonly preStopSeconds: number;
}

export interface GateResources {
  readonly cpuRequest: string;
  readonly cpuLimit?: string | undefined;
  readonly memoryRequest: string;
  readonly memoryLimit: string;
}

export const DEFAULT_RESOURCES: GateResources = { cpuRequest: "10m", memoryRequest: "64Mi", memoryLimit: "320Mi" };
/** Below the ephemeral port range, and not a port of a common server. */
export const DEFAULT_GATE_PORT = 19_080;
export const DEFAULT_GATE_ADMIN_PORT = 19_081;
export const DEFAULT_PRE_STOP_SECONDS = 5;
