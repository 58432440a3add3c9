import { DEFAULT_RESOURCES, type InjectionConfig } from "../injection/config.ts";
import type { Injection } from "../injection/inject.ts";
import type { PatchOperation } from "../injection/json-patch.ts";
import type { Pod } from "../injection/pod.ts";

/* Builders of pods and injection settings for tests. */

export const aConfig = (more: Partial<InjectionConfig> = {}): InjectionConfig => ({
  gateImage: "registry.example/postern-sidecar:1",
  redirectImage: "registry.example/iptables:1",
  gatePort: 19_080,
  adminPort: 19_081,
  resources: DEFAULT_RESOURCES,
  secret: "postern-gate",
  env: {},
  tokenAudience: "postern",
  preStopSeconds: 5,
  ...more,
});

export const anInjection = ({ config, policy, ...more }: Partial<Injection> = {}): Injection => ({
  config: config ?? aConfig(),
  cluster: "main",
  namespace: "shop",
  workspaceId: "ws_1",
  hookToken: "token-of-the-hook",
  snapshotKey: "key-of-the-snapshot",
  policy: { name: "orders", port: "http", protocol: "http1", interception: "Port", overridden: [], ...policy },
  ...more,
});

/** Pod of a small web app with a named port, one probe of each kind, and a helper container. */
export const aPod = (more: { metadata?: object; spec?: object; app?: object } = {}): Pod =>
  ({
    metadata: {
      generateName: "orders-7c9-",
      labels: { app: "orders", "postern.dev/guarded": "true" },
      ...more.metadata,
    },
    spec: {
      containers: [
        {
          name: "app",
          image: "registry.example/orders:1",
          ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
          readinessProbe: { httpGet: { path: "/ready?deep=1", port: "http" }, periodSeconds: 3, timeoutSeconds: 2 },
          livenessProbe: { tcpSocket: { port: 8080 } },
          ...more.app,
        },
        { name: "helper", image: "registry.example/helper:1" },
      ],
      ...more.spec,
    },
  }) as unknown as Pod;

const OWN = { enumerable: true, configurable: true, writable: true };

/** Applies a JSON patch (RFC 6902). Throws if the target of an operation does not exist. */
export function applyPatch(document: unknown, patch: readonly PatchOperation[]): unknown {
  const root = { document: structuredClone(document) };
  for (const operation of patch) {
    const tokens = operation.path.split("/").map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
    const [last = ""] = tokens.splice(-1);
    // biome-ignore lint/suspicious/noExplicitAny: JSON of any shape.
    let at: any = tokens.length === 0 ? root : root.document;
    for (const token of tokens.slice(1)) at = at[token];
    const name = tokens.length === 0 ? "document" : last;
    if (at === undefined || (operation.op !== "add" && !Object.hasOwn(at, name)))
      throw new Error(`no ${operation.path}`);
    const value = operation.op === "remove" ? undefined : structuredClone(operation.value);
    // Defines the member explicitly, because an assignment to `__proto__` would not create a member.
    if (operation.op !== "remove") Object.defineProperty(at, name, { value, ...OWN });
    else if (Array.isArray(at)) at.splice(Number(name), 1);
    else delete at[name];
  }
  return root.document;
}
