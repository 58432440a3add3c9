/** How gates are injected: the same for all pods of a cluster. */
export interface InjectionConfig {
  /** Image of the gate; its entry point runs the sidecar. */
  readonly gateImage: string;
  readonly imagePullPolicy?: "Always" | "IfNotPresent" | "Never" | undefined;
  /** Image with `sh`, `iptables` and `ip6tables`, for `interception: Redirect`; pods that need it are refused without one. */
  readonly redirectImage?: string | undefined;
  /** The first choice; the next free one when the pod uses it itself. */
  readonly gatePort: number;
  readonly adminPort: number;
  readonly resources: GateResources;
  /** Name of a Secret in the pod's own namespace whose members are the gate's environment, such as REDIS_URL. */
  readonly secret?: string | undefined;
  /** Further environment of every gate. */
  readonly env: Readonly<Record<string, string>>;
  /** Audience of the ServiceAccount token that gates present to the api-server; no token is mounted without it. */
  readonly tokenAudience?: string | undefined;
  /** How long an app without a `preStop` of its own sleeps before it is told to end; 0 when the cluster has no sleep action. */
  readonly preStopSeconds: number;
}

export interface GateResources {
  readonly cpuRequest: string;
  readonly cpuLimit?: string | undefined;
  readonly memoryRequest: string;
  readonly memoryLimit: string;
}

export const DEFAULT_RESOURCES: GateResources = { cpuRequest: "10m", memoryRequest: "64Mi", memoryLimit: "320Mi" };
/** Below the ports that kernels hand out, and not those of common servers. */
export const DEFAULT_GATE_PORT = 19_080;
export const DEFAULT_GATE_ADMIN_PORT = 19_081;
export const DEFAULT_PRE_STOP_SECONDS = 5;
