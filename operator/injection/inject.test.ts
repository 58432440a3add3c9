import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { GateProbes } from "../../core/gates/probes.ts";
import { aConfig, anInjection, aPod } from "../test/pods.ts";
import { type Injection, injectGate } from "./inject.ts";
import { Pod } from "./pod.ts";

function inject(pod: Pod, injection: Partial<Injection> = {}) {
  const injected = injectGate(pod, anInjection(injection));
  if (injected.refused !== undefined) throw new Error(injected.refused);
  const [gate, ...others] = injected.pod.spec.initContainers ?? [];
  if (gate === undefined) throw new Error("no gate");
  const env = Object.fromEntries((gate.env ?? []).map(({ name, value }) => [name, value]));
  return { ...injected, gate, others, env, probes: GateProbes.parse(JSON.parse(env.POSTERN_PROBES ?? "[]")) };
}
const refusal = (pod: Pod, injection: Partial<Injection> = {}): string =>
  injectGate(pod, anInjection(injection)).refused ?? "admitted";
const policy = (more: Partial<Injection["policy"]>) => ({ policy: { ...anInjection().policy, ...more } });
const containerOf = (pod: Pod, name: string) => pod.spec.containers.find((one) => one.name === name);

/** Environment variables that the configuration page documents for `postern sidecar`. */
const SIDECAR_VARIABLES = readFileSync(new URL("../../docs/operations/configuration.md", import.meta.url), "utf8");

describe("a pod of extreme size", () => {
  const app = (more: object) => aPod({ app: more });
  const numbered = (count: number) => Array.from({ length: count }, (_, i) => ({ containerPort: 1_024 + i }));
  const msOf = (work: () => void) => {
    const startMs = performance.now();
    work();
    return performance.now() - startMs;
  };

  // Without a limit, the search for a free port would never end and block the operator.
  test("injection rejects a pod that lists so many ports that none is free for the gate", () => {
    const everyPort = app({ ports: [{ name: "http", containerPort: 8_080 }, ...numbered(64_512)] });
    expect(refusal(everyPort)).toContain("list 64513 ports; the maximum for a guarded pod is 2000");
  });

  test("injection rejects a pod with too many containers, including init containers", () => {
    const helpers = Array.from({ length: 249 }, (_, i) => ({ name: `helper-${i}` }));
    const { containers } = aPod().spec;
    expect(refusal(aPod({ spec: { containers, initContainers: helpers } }))).toContain("251 containers");
    expect(refusal(aPod({ spec: { containers, initContainers: helpers.slice(1) } }))).toBe("admitted");
  });

  test("injection decides about a pod of maximum size within three seconds", () => {
    const half = Array.from({ length: 999 }, (_, i) => i);
    const ports = [
      ...half.map((i) => ({ name: `a${i}`, containerPort: 8_080 })),
      { name: "http", containerPort: 8_080 },
      ...half.map((i) => ({ name: `b${i}`, containerPort: 81 })),
    ];
    const entries = (count: number) =>
      JSON.stringify({
        ports: Array.from({ length: count }, () => ({ container: "app", at: 0, number: 1, name: "" })),
      });
    const annotated = (count: number) => ({ "postern.dev/before-injection": entries(count) });
    const spec = { ...app({ ports }).spec, initContainers: [{ name: "postern-gate" }] };
    const largest = aPod({ spec, metadata: { annotations: annotated(2_000) } });
    expect(msOf(() => expect(refusal(largest)).toBe("admitted"))).toBeLessThan(3_000);
    const larger = aPod({ spec, metadata: { annotations: annotated(2_001) } });
    expect(refusal(larger)).toContain("was not injected");
  });
});

describe("the gate", () => {
  test("injected gate is the first init container, restarts always and is fully restricted", () => {
    const first = { name: "setup", image: "x" };
    const { gate, others } = inject(aPod({ spec: { ...aPod().spec, initContainers: [first] } }));
    expect(others).toEqual([first]);
    expect(gate).toMatchObject({
      name: "postern-gate",
      restartPolicy: "Always",
      image: "registry.example/postern-sidecar:1",
      startupProbe: { httpGet: { path: "/livez", port: 19_081 } },
      readinessProbe: { httpGet: { path: "/readyz", port: 19_081 } },
      resources: { requests: { cpu: "10m", memory: "64Mi" }, limits: { memory: "320Mi" } },
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 65_532,
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
        seccompProfile: { type: "RuntimeDefault" },
      },
    });
  });

  test("injected gate is configured with its policy, workspace, app, pod and secret paths", () => {
    const { env, gate, pod } = inject(aPod(), { config: aConfig({ env: { POSTERN_REGION: "eu" } }) });
    expect(env).toMatchObject({
      POSTERN_POLICY: "main/shop/orders",
      POSTERN_WORKSPACE: "ws_1",
      POSTERN_UPSTREAM: "http://127.0.0.1:8080",
      POSTERN_POD: "$(POD_NAMESPACE)/$(POD_NAME)",
      POSTERN_TOKEN_FILE: "/var/run/secrets/postern/token",
      POSTERN_REGION: "eu",
    });
    expect(gate).toMatchObject({ envFrom: [{ secretRef: { name: "postern-gate" } }] });
    // A referenced variable must precede its reference.
    expect(gate.env?.slice(0, 2).map(({ name }) => name)).toEqual(["POD_NAMESPACE", "POD_NAME"]);
    expect(pod.spec.volumes).toMatchObject([
      { name: "postern-snapshot" },
      { name: "postern-token", projected: { sources: [{ serviceAccountToken: { audience: "postern" } }] } },
    ]);
    expect(pod.metadata.annotations).toMatchObject({ "postern.dev/policy": "orders" });
    const bare = inject(aPod(), {
      config: aConfig({ tokenAudience: undefined, secret: undefined }),
    });
    expect(bare.pod.spec.volumes).toMatchObject([{ name: "postern-snapshot" }]);
    expect(bare.gate).not.toHaveProperty("envFrom");
  });

  test("injected gate uses HTTP/2 to the app if the policy says so, and the TLS certificate of the annotated Secret", () => {
    const told = { "postern.dev/upstream-protocol": "http1", "postern.dev/tls-secret": "orders-tls" };
    const { gate, env, pod } = inject(aPod({ metadata: { annotations: told } }), policy({ protocol: "h2c" }));
    expect(env.POSTERN_UPSTREAM_PROTOCOL).toBe("h2c");
    const mount = gate.volumeMounts?.find(({ name }) => name === "postern-tls");
    expect(mount).toEqual({ name: "postern-tls", mountPath: expect.any(String), readOnly: true });
    // File names in a Secret of type kubernetes.io/tls.
    expect([env.POSTERN_TLS_CERT_FILE, env.POSTERN_TLS_KEY_FILE]).toEqual([
      `${mount?.mountPath}/tls.crt`,
      `${mount?.mountPath}/tls.key`,
    ]);
    expect(pod.spec.volumes).toContainEqual({ name: "postern-tls", secret: { secretName: "orders-tls" } });
    // The operator's own commands know these variables.
    for (const name of ["POSTERN_UPSTREAM_PROTOCOL", "POSTERN_TLS_CERT_FILE", "POSTERN_TLS_KEY_FILE"]) {
      expect(SIDECAR_VARIABLES).toContain(name);
    }
    expect(inject(pod, policy({ protocol: "h2c" })).pod).toEqual(pod);
    const { annotations: _, ...metadata } = pod.metadata;
    const before = pod.metadata.annotations?.["postern.dev/before-injection"] ?? "";
    const untold = inject({
      ...pod,
      metadata: { ...metadata, annotations: { "postern.dev/before-injection": before } },
    });
    expect(untold.pod.spec.volumes?.map(({ name }) => name)).not.toContain("postern-tls");
  });

  test("injected gate uses HTTP/1.1 to the app and no TLS by default", () => {
    const { gate, env, pod } = inject(aPod());
    // The policy sets the protocol; this annotation has no meaning.
    const other = inject(aPod({ metadata: { annotations: { "postern.dev/upstream-protocol": "h2c" } } }));
    for (const one of [env, other.env]) {
      expect(Object.keys(one).filter((name) => /TLS|PROTOCOL/.test(name))).toEqual([]);
    }
    expect(JSON.stringify([gate, pod.spec.volumes])).not.toContain("postern-tls");
  });

  test("injection labels the pod with its policy for NetworkPolicy selectors", () => {
    const labelOf = (name: string, given = aPod()) => {
      const { policy } = anInjection();
      const injected = injectGate(given, anInjection({ policy: { ...policy, name } }));
      if (injected.refused !== undefined) throw new Error(injected.refused);
      return injected.pod.metadata.labels ?? {};
    };
    expect(labelOf("orders")).toEqual({
      app: "orders",
      "postern.dev/guarded": "true",
      "postern.dev/gated-by": "orders",
      "postern.dev/interception": "Port",
    });
    expect(labelOf("orders", aPod({ metadata: { labels: { "postern.dev/gated-by": "another" } } }))).toEqual({
      "postern.dev/gated-by": "orders",
      "postern.dev/interception": "Port",
    });
    const long = `${"a".repeat(62)}.${"b".repeat(190)}`;
    const values = [long, `${long.slice(0, -1)}c`].map((name) => labelOf(name)["postern.dev/gated-by"]);
    expect(new Set(values).size).toBe(2);
    for (const value of values) expect(value).toMatch(/^(?=.{1,63}$)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/);
  });

  test("injected gate accepts the pod termination request only from kubelet", () => {
    const { gate, env } = inject(aPod());
    expect(gate.lifecycle?.preStop?.httpGet).toMatchObject({
      path: "/drain",
      port: 19_081,
      httpHeaders: [{ name: "Postern-Hook-Token", value: env.POSTERN_HOOK_TOKEN }],
    });
    expect(env.POSTERN_HOOK_TOKEN).toBe("token-of-the-hook");
  });

  test("injected gate has a size-limited private volume and a key to encrypt its contents", () => {
    const { gate, env, pod } = inject(aPod());
    expect(pod.spec.volumes).toContainEqual({ name: "postern-snapshot", emptyDir: { sizeLimit: "40Mi" } });
    expect(gate.volumeMounts).toContainEqual({ name: "postern-snapshot", mountPath: env.POSTERN_SNAPSHOT_DIR });
    expect(env.POSTERN_SNAPSHOT_KEY).toBe("key-of-the-snapshot");
    for (const volume of ["postern-snapshot", "postern-token", "postern-tls"]) {
      const shared = aPod({ app: { volumeMounts: [{ name: volume, mountPath: "/gate" }] } });
      expect(injectGate(shared, anInjection()).refused).toMatch(
        /container app mounts a volume that is reserved for the gate/,
      );
    }
  });

  test("injection chooses other gate ports when the pod uses the default ones", () => {
    const taken = [19_080, 19_081, 19_082].map((containerPort) => ({ containerPort }));
    const pod = aPod({ app: { ports: [{ name: "http", containerPort: 8080 }, ...taken] } });
    const { gate, env } = inject(pod);
    expect(gate.ports?.map(({ containerPort }) => containerPort)).toEqual([19_083, 19_084]);
    expect(env).toMatchObject({ POSTERN_SIDECAR_PORT: "19083", POSTERN_ADMIN_PORT: "19084" });
  });

  test.each([
    {
      annotations: { "cpu-request": "50m", "cpu-limit": "1" },
      resources: { requests: { cpu: "50m" }, limits: { cpu: "1" } },
    },
    {
      annotations: { "memory-limit": "128Mi" },
      resources: { requests: { memory: "64Mi" }, limits: { memory: "128Mi" } },
    },
    {
      annotations: { "memory-request": "0.5Gi" },
      resources: { requests: { memory: "0.5Gi" }, limits: { memory: "0.5Gi" } },
    },
    {
      annotations: { "memory-limit": "64Mi" },
      resources: { requests: { memory: "64Mi" }, limits: { memory: "64Mi" } },
    },
    { annotations: { "cpu-limit": "5m" }, resources: { requests: { cpu: "5m" }, limits: { cpu: "5m" } } },
  ])("injected gate has the resources of the annotations: $annotations", ({ annotations, resources }) => {
    const written = Object.fromEntries(
      Object.entries(annotations).map(([name, value]) => [`postern.dev/gate-${name}`, value]),
    );
    expect(inject(aPod({ metadata: { annotations: written } })).gate).toMatchObject({ resources });
  });

  test.each([
    {
      name: "a memory limit",
      of: { limits: { memory: "256Mi" } },
      resources: { requests: { cpu: "10m", memory: "0" }, limits: { memory: "256Mi" } },
      heap: "64",
    },
    {
      name: "a memory limit above the gate's",
      of: { limits: { memory: "2Gi" }, requests: { memory: "1Gi" } },
      resources: { requests: { cpu: "10m", memory: "0" }, limits: { memory: "320Mi" } },
      heap: "80",
    },
    {
      name: "a CPU request",
      of: { requests: { cpu: "1" } },
      resources: { requests: { cpu: "0", memory: "64Mi" }, limits: { memory: "320Mi" } },
      heap: "80",
    },
  ])("injected gate and its heap stay within $name of the pod", ({ of, resources, heap }) => {
    const { gate, env } = inject(aPod({ spec: { ...aPod().spec, resources: of } }));
    expect(gate.resources).toEqual(resources);
    expect(env.NODE_OPTIONS).toContain(`--max-old-space-size=${heap} `);
  });
});

describe("interception Port", () => {
  test("interception Port moves the port name to the gate and keeps the app's port number", () => {
    const { pod, gate } = inject(aPod());
    expect(gate.ports).toEqual([
      { name: "http", containerPort: 19_080, protocol: "TCP" },
      { name: "postern-admin", containerPort: 19_081, protocol: "TCP" },
    ]);
    expect(containerOf(pod, "app")?.ports).toEqual([{ containerPort: 8080, protocol: "TCP" }]);
  });

  test("interception Port takes over all TCP names of the port from all containers", () => {
    const containers = [
      { name: "app", ports: [{ name: "web", containerPort: 8080 }] },
      {
        name: "second",
        ports: [
          { name: "http", containerPort: 8080 },
          { name: "other", containerPort: 1 },
        ],
        lifecycle: { postStart: { tcpSocket: { port: "http" } } },
      },
      { name: "third", ports: [{ name: "http", containerPort: 53, protocol: "UDP" }] },
    ];
    for (const port of ["http", 8080]) {
      const { pod, gate } = inject(aPod({ spec: { containers } }), policy({ port }));
      expect(pod.spec.containers.map(({ ports }) => ports?.map(({ name }) => name))).toEqual([
        [undefined],
        [undefined, "other"],
        ["http"],
      ]);
      expect(containerOf(pod, "second")?.lifecycle?.postStart).toEqual({ tcpSocket: { port: 8080 } });
      const toGate = gate.ports?.filter(({ containerPort }) => containerPort === 19_080).map(({ name }) => name);
      expect(toGate?.toSorted()).toEqual(["http", "web"]);
      expect(inject(pod, policy({ port })).pod).toEqual(pod);
    }
  });

  test("interception Port finds a port by number and warns when it has no name", () => {
    const byNumber = inject(aPod(), policy({ port: 8080 }));
    expect(byNumber.gate.ports?.[0]?.name).toBe("http");
    expect(byNumber.warnings).toEqual([]);
    for (const ports of [[{ containerPort: 8080 }], []]) {
      const unnamed = inject(aPod({ app: { ports } }), policy({ port: 8080 }));
      expect(unnamed.gate.ports?.[0]?.name).toBe("postern");
      expect(unnamed.env.POSTERN_UPSTREAM).toBe("http://127.0.0.1:8080");
      expect(unnamed.warnings.join()).toContain("the port 8080 has no name");
    }
  });

  test("interception Port routes only probes of the guarded port through the gate", () => {
    const pod = aPod({
      app: {
        ports: [
          { name: "http", containerPort: 8080 },
          { name: "health", containerPort: 8081 },
        ],
        startupProbe: { grpc: { port: 8080, service: "shop.Orders" }, failureThreshold: 30 },
        livenessProbe: {
          httpGet: {
            path: "live/$(POD_NAME)",
            port: 8080,
            scheme: "HTTPS",
            httpHeaders: [{ name: "Host", value: "shop.example" }],
          },
        },
        readinessProbe: { httpGet: { path: "/ready", port: "health" } },
      },
    });
    const { pod: injected, probes, gate } = inject(pod);
    const app = containerOf(injected, "app");
    expect(app?.startupProbe).toEqual({
      httpGet: { path: "/probes/app/startupProbe", port: 19_081, scheme: "HTTP" },
      failureThreshold: 30,
    });
    expect(app?.livenessProbe).toEqual({
      httpGet: { path: "/probes/app/livenessProbe", port: 19_081, scheme: "HTTP" },
    });
    expect(app?.readinessProbe).toEqual({ httpGet: { path: "/ready", port: "health" } });
    expect(probes).toEqual([
      {
        path: "/probes/app/startupProbe",
        timeoutMs: 1000,
        probe: { kind: "grpc", port: 8080, service: "shop.Orders" },
      },
      {
        path: "/probes/app/livenessProbe",
        timeoutMs: 1000,
        probe: {
          kind: "http",
          port: 8080,
          target: "/live/$$(POD_NAME)",
          isTls: true,
          headers: [{ name: "Host", value: "shop.example" }],
        },
      },
    ]);
    // Kubelet reads `$$(` as a literal `$(` and would expand `$(`.
    expect(gate.env?.find(({ name }) => name === "POSTERN_PROBES")?.value).toContain("live/$$(POD_NAME)");
  });

  test("interception Port leaves exec probes and probes with a host unchanged", () => {
    const kept = {
      livenessProbe: { exec: { command: ["true"] } },
      readinessProbe: { httpGet: { path: "/", port: "http", host: "10.0.0.1" } },
      startupProbe: { tcpSocket: { port: 8080, host: "10.0.0.1" } },
    };
    const { pod, probes } = inject(aPod({ app: kept }));
    expect(containerOf(pod, "app")).toMatchObject(kept);
    expect(probes).toEqual([]);
  });

  test("interception Port replaces the port name by its number in lifecycle hooks", () => {
    const lifecycle = {
      postStart: { httpGet: { port: "http", path: "/warm" } },
      preStop: { tcpSocket: { port: "http" } },
    };
    expect(containerOf(inject(aPod({ app: { lifecycle } })).pod, "app")?.lifecycle).toEqual({
      postStart: { httpGet: { port: 8080, path: "/warm" } },
      preStop: { tcpSocket: { port: 8080 } },
    });
  });
});

test("interception Redirect redirects IPv4 and IPv6 packets and keeps the port name", () => {
  const { pod, gate, others, probes } = inject(aPod(), policy({ interception: "Redirect" }));
  const [redirect] = others;
  expect(redirect).toMatchObject({
    name: "postern-redirect",
    image: "registry.example/iptables:1",
    securityContext: {
      capabilities: { drop: ["ALL"], add: ["NET_ADMIN", "NET_RAW"] },
      allowPrivilegeEscalation: false,
    },
  });
  const [, , script] = (redirect?.command ?? []) as string[];
  expect(script?.match(/--dport 8080 -j REDIRECT --to-ports 19080/g)).toHaveLength(2);
  expect(script).toMatch(/^iptables .*\nif .*; then ip6tables /);
  expect(containerOf(pod, "app")?.ports?.[0]?.name).toBe("http");
  expect(gate.ports?.[0]?.name).toBe("postern");
  // Packets of kubelet are redirected too.
  expect(probes.map(({ path }) => path).sort()).toEqual(["/probes/app/livenessProbe", "/probes/app/readinessProbe"]);
});

test("interception None changes nothing in the app except its termination", () => {
  const { pod, probes, gate } = inject(aPod(), policy({ interception: "None" }));
  const { lifecycle, ...app } = containerOf(pod, "app") ?? { name: "" };
  expect(app).toEqual(aPod().spec.containers[0]);
  expect(lifecycle).toEqual({ preStop: { sleep: { seconds: 5 } } });
  expect(probes).toEqual([]);
  expect(gate.ports?.[0]?.name).toBe("postern");
});

describe("preStop sleep", () => {
  test.each([
    { name: "5 s by default", spec: {}, seconds: 5 },
    { name: "half of a short grace period", spec: { terminationGracePeriodSeconds: 7 }, seconds: 3 },
    { name: "nothing where there is no time", spec: { terminationGracePeriodSeconds: 1 }, seconds: undefined },
    { name: "nothing where there is none at all", spec: { terminationGracePeriodSeconds: 0 }, seconds: undefined },
  ])("injected preStop sleep is $name", ({ spec, seconds }) => {
    const { pod } = inject(aPod({ spec: { ...aPod().spec, ...spec } }));
    const sleeps = pod.spec.containers.map(
      ({ lifecycle }) => (lifecycle?.preStop as { sleep?: { seconds: number } })?.sleep?.seconds,
    );
    expect(sleeps).toEqual([seconds, seconds]);
  });

  test("injection adds no preStop sleep if the container has a hook or the cluster does not support it", () => {
    const preStop = { exec: { command: ["drain"] } };
    expect(containerOf(inject(aPod({ app: { lifecycle: { preStop } } })).pod, "app")?.lifecycle).toEqual({ preStop });
    const none = inject(aPod(), { config: aConfig({ preStopSeconds: 0 }) });
    expect(none.pod.spec.containers.every(({ lifecycle }) => lifecycle === undefined)).toBe(true);
  });
});

test.each(["Redirect", "None"] as const)(
  "injection leaves a hostPort unchanged with interception %s",
  (interception) => {
    const ports = [{ name: "http", containerPort: 8080, hostPort: 80 }];
    const { pod } = inject(aPod({ app: { ports } }), policy({ interception }));
    expect(containerOf(pod, "app")?.ports).toEqual(ports);
  },
);

test.each(["True", "yes", ""])("injection accepts label value %j as true and warns about it", (value) => {
  const { warnings } = inject(aPod({ metadata: { labels: { "postern.dev/guarded": value } } }));
  expect(warnings.join()).toContain(`postern.dev/guarded has the value "${value}"`);
});

test("when two policies select a pod, injection warns which one is not enforced", () => {
  expect(inject(aPod(), policy({ overridden: ["younger"] })).warnings.join()).toContain(
    "ApiKeyPolicy younger also selects this pod; the gate enforces orders",
  );
});

test.each<{ name: string; pod?: Pod; injection?: Partial<Injection>; says: string }>([
  {
    name: "a pod of the host's network",
    pod: aPod({ spec: { ...aPod().spec, hostNetwork: true } }),
    says: "hostNetwork",
  },
  { name: "a pod of Windows", pod: aPod({ spec: { ...aPod().spec, os: { name: "windows" } } }), says: "Linux" },
  { name: "a port that no container has", injection: policy({ port: "web" }), says: "guards the port web" },
  {
    name: "Redirect without an image",
    injection: { ...policy({ interception: "Redirect" }), config: aConfig({ redirectImage: undefined }) },
    says: "--redirect-image",
  },
  {
    name: "a container with our name that is not ours",
    pod: aPod({ spec: { ...aPod().spec, initContainers: [{ name: "postern-gate", image: "evil" }] } }),
    says: "was not injected",
  },
  {
    name: "the same among the app's containers",
    pod: aPod({ spec: { containers: [{ name: "postern-gate", image: "evil" }] } }),
    says: "was not injected",
  },
  {
    name: "a made-up annotation beside it",
    pod: aPod({
      metadata: { annotations: { "postern.dev/before-injection": "{" } },
      spec: { ...aPod().spec, initContainers: [{ name: "postern-gate" }] },
    }),
    says: "was not injected",
  },
  {
    name: "resources that are none",
    pod: aPod({ metadata: { annotations: { "postern.dev/gate-memory-limit": "much" } } }),
    says: "gate-memory-limit",
  },
  {
    name: "a memory limit below what a gate needs",
    pod: aPod({ metadata: { annotations: { "postern.dev/gate-memory-limit": "63Mi" } } }),
    says: "the annotation postern.dev/gate-memory-limit is 63Mi, but a gate requires at least 64Mi",
  },
  {
    name: "a memory limit of the whole pod below what a gate needs",
    pod: aPod({ spec: { ...aPod().spec, resources: { limits: { memory: "32Mi" } } } }),
    says: "spec.resources.limits.memory is 32Mi",
  },
  {
    name: "a default memory limit below what a gate needs",
    injection: { config: aConfig({ resources: { cpuRequest: "10m", memoryRequest: "1Mi", memoryLimit: "16Mi" } }) },
    says: "--gate-resources) is 16Mi",
  },
  {
    name: "a hostPort for the guarded port",
    pod: aPod({ app: { ports: [{ name: "http", containerPort: 8080, hostPort: 80 }] } }),
    says: "the container app has hostPort 80 for the guarded port 8080",
  },
  {
    name: "a hostPort for the guarded port in another container's list",
    pod: aPod({
      spec: {
        containers: [...aPod().spec.containers, { name: "c", ports: [{ containerPort: 8080, hostPort: 81 }] }],
      },
    }),
    says: "the container c has hostPort 81",
  },
  {
    name: "a name of the guarded port that means another number in another container",
    pod: aPod({
      spec: {
        containers: [...aPod().spec.containers, { name: "second", ports: [{ name: "http", containerPort: 8081 }] }],
      },
    }),
    says: "the port name http is 8080 and, in the container second, 8081",
  },
  {
    name: "the same for a number whose name another container has",
    pod: aPod({
      spec: {
        containers: [{ name: "first", ports: [{ name: "http", containerPort: 8081 }] }, ...aPod().spec.containers],
      },
    }),
    injection: policy({ port: 8080 }),
    says: "in the container first, 8081",
  },
  ...["", "../other", "Upper", "a".repeat(254), "-a"].map((secret) => ({
    name: `the Secret "${secret.slice(0, 9)}"`,
    pod: aPod({ metadata: { annotations: { "postern.dev/tls-secret": secret } } }),
    says: "tls-secret is not the name",
  })),
])("injection rejects $name", ({ pod = aPod(), injection = {}, says }) =>
  expect(refusal(pod, injection)).toContain(says),
);

/** Pods with ports, probes and hooks, some of which concern the guarded port. */
const pods = (() => {
  const port = fc.constantFrom(8080, 8081, 19_080, 19_081);
  const portRef = fc.oneof(port, fc.constantFrom("http", "web"));
  const handler = fc.oneof(
    fc.record({
      httpGet: fc.record({ port: portRef, path: fc.constantFrom("/", "x", "/a?b=$(C)") }, { requiredKeys: ["port"] }),
    }),
    fc.record({ tcpSocket: fc.record({ port: portRef }) }),
    fc.record({ grpc: fc.record({ port }) }),
    fc.constant({ exec: { command: ["true"] } }),
  );
  const probe = fc.tuple(handler, fc.record({ timeoutSeconds: fc.integer({ min: 1, max: 9 }) }, { requiredKeys: [] }));
  const container = fc.record(
    {
      image: fc.constant("x"),
      restartPolicy: fc.constant("Always"),
      ports: fc.array(
        fc.record(
          { containerPort: port, name: fc.constantFrom("http", "web"), protocol: fc.constantFrom("TCP", "UDP") },
          { requiredKeys: ["containerPort"] },
        ),
        { maxLength: 3 },
      ),
      livenessProbe: probe.map(([a, b]) => ({ ...a, ...b })),
      readinessProbe: probe.map(([a, b]) => ({ ...a, ...b })),
      lifecycle: fc.record({ preStop: handler, postStart: handler }, { requiredKeys: [] }),
    },
    { requiredKeys: ["image"] },
  );
  const named = (prefix: string, all: object[]) => all.map((one, i) => ({ name: `${prefix}-${i}`, ...one }));
  return fc
    .record({
      initContainers: fc.array(container, { maxLength: 2 }),
      containers: fc.array(container, { minLength: 1, maxLength: 3 }),
      terminationGracePeriodSeconds: fc.constantFrom(0, 1, 30),
    })
    .map(({ initContainers, containers, ...spec }) =>
      // Parsed as in the webhook.
      Pod.parse(
        aPod({
          spec: { ...spec, initContainers: named("init", initContainers), containers: named("app", containers) },
        }),
      ),
    );
})();

test("repeated injection changes nothing, even after other webhooks add containers", () => {
  let admitted = 0;
  fc.assert(
    fc.property(pods, fc.constantFrom("Port", "Redirect", "None"), (pod, interception) => {
      const injection = anInjection(policy({ interception: interception as "Port", port: 8080 }));
      const once = injectGate(pod, injection);
      if (once.refused !== undefined) return;
      admitted += 1;
      const twice = injectGate(once.pod, { ...injection, hookToken: "another", snapshotKey: "another" });
      expect(twice).toEqual(once);
      const [gate, ...rest] = once.pod.spec.initContainers ?? [];
      const mesh = { name: "mesh", restartPolicy: "Always", ports: [{ name: "mesh", containerPort: 15_001 }] };
      const changed = { ...once.pod, spec: { ...once.pod.spec, initContainers: [mesh, gate, ...rest] } } as Pod;
      const again = injectGate(changed, injection);
      const first = {
        ...once.pod,
        spec: {
          ...once.pod.spec,
          initContainers: [
            gate,
            ...rest.filter(({ name }) => name === "postern-redirect"),
            mesh,
            ...rest.filter(({ name }) => name !== "postern-redirect"),
          ],
        },
      };
      expect(again).toEqual({ ...once, pod: first });
    }),
    { numRuns: 300 },
  );
  expect(admitted).toBeGreaterThan(100);
});

test("no Service or probe bypasses the gate through a port name", () => {
  fc.assert(
    fc.property(pods, (pod) => {
      const once = injectGate(pod, anInjection(policy({ port: "http" })));
      if (once.refused !== undefined) return;
      for (const { ports = [] } of once.pod.spec.containers) {
        expect(ports.filter(({ name, protocol = "TCP" }) => name === "http" && protocol === "TCP")).toEqual([]);
      }
      expect(once.pod.spec.initContainers?.[0]?.ports?.[0]?.name).toBe("http");
    }),
    { numRuns: 300 },
  );
});
