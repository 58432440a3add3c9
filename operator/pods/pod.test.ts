import { expect, test } from "vitest";
import type { KubeObject } from "../runtime/kube-client.ts";
import { toPod, trimPod } from "./pod.ts";

const aPod = (more: { spec?: object; status?: object; metadata?: object } = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name: "a",
    namespace: "shop",
    uid: "uid-a",
    resourceVersion: "7",
    creationTimestamp: "2026-01-01T00:00:00Z",
    labels: { app: "orders" },
    annotations: {
      "postern.dev/policy": "orders",
      "kubectl.kubernetes.io/last-applied-configuration": "x".repeat(9000),
    },
    ...more.metadata,
  },
  spec: { containers: [{ name: "app", env: [{ name: "PASSWORD", value: "secret" }] }], ...more.spec },
  status: { phase: "Running", containerStatuses: [{}], ...more.status },
});

test("pod summaries of 10,000 pods use a few megabytes and contain no environment values", () => {
  const text = JSON.stringify(trimPod(aPod()));
  expect(text.length).toBeLessThan(400);
  expect(text).not.toContain("secret");
  expect(trimPod(aPod()).metadata).toMatchObject({ uid: "uid-a", resourceVersion: "7" });
});

test.each([
  { name: "a sidecar", spec: { initContainers: [{ name: "postern-gate" }] }, has: true },
  { name: "a container", spec: { containers: [{ name: "app" }, { name: "postern-gate" }] }, has: true },
  { name: "none", spec: { initContainers: [{ name: "postern-gate-2" }] }, has: false },
])("pod summary detects a gate container: $name", ({ spec, has }) => {
  expect(toPod(trimPod(aPod({ spec }))).gate !== undefined).toBe(has);
});

test.each([
  { name: "runs", is: true },
  { name: "is on a lost node", status: { phase: "Unknown" }, is: true },
  { name: "waits", status: { phase: "Pending" }, is: false },
  { name: "has no phase yet", status: { phase: undefined }, is: false },
  { name: "is done", status: { phase: "Succeeded" }, is: false },
  { name: "is being deleted", metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" }, is: false },
])("pod summary detects whether a pod that $name may serve requests ($is)", ({ is, ...more }) => {
  expect(toPod(trimPod(aPod(more))).isRunning).toBe(is);
});

test("pod summary is stable when it is summarized again", () => {
  const once = trimPod(aPod({ spec: { initContainers: [{ name: "postern-gate" }] } }));
  expect(toPod(trimPod(once))).toEqual(toPod(once));
  expect(toPod(once)).toEqual({
    namespace: "shop",
    name: "a",
    uid: "uid-a",
    labels: { app: "orders" },
    isRunning: true,
    hasEnded: false,
    gate: { guards: undefined, protocol: "http1", redirects: false, isOnHostNetwork: false, own: [], ports: [] },
    policy: "orders",
  });
});

test("pod summary keeps the ports, protocol and redirection on which a NetworkPolicy depends", () => {
  const gate = {
    name: "postern-gate",
    env: [
      { name: "POSTERN_UPSTREAM", value: "http://127.0.0.1:8080" },
      { name: "POSTERN_UPSTREAM_PROTOCOL", value: "h2c" },
      { name: "REDIS_URL", value: "redis://:password@redis" },
    ],
    ports: [{ name: "http", containerPort: 19_080, protocol: "TCP" }],
  };
  const containers = [
    {
      name: "app",
      ports: [{ containerPort: 8080 }, { name: "dns", containerPort: 53, protocol: "UDP" }],
    },
  ];
  const trimmed = trimPod(
    aPod({ spec: { containers, initContainers: [gate, { name: "postern-redirect" }], hostNetwork: true } }),
  );
  expect(JSON.stringify(trimmed)).not.toContain("password");
  expect(toPod(trimPod(trimmed)).gate).toEqual({
    guards: 8080,
    protocol: "h2c",
    redirects: true,
    isOnHostNetwork: true,
    own: [19_080],
    ports: [
      { name: undefined, number: 8080 },
      { name: "http", number: 19_080 },
    ],
  });
});

test.each([
  { upstream: "http://127.0.0.1:8080", guards: 8080 },
  { upstream: "http://localhost", guards: 80 },
  { upstream: "https://[::1]/", guards: 443 },
  { upstream: "http://orders.shop.svc:8080", guards: undefined },
  { upstream: "127.0.0.1:8080", guards: undefined },
  { upstream: undefined, guards: undefined },
])("gate with upstream $upstream guards port $guards", ({ upstream, guards }) => {
  const env = [{ name: "POSTERN_UPSTREAM", ...(upstream === undefined ? {} : { value: upstream }) }];
  const containers = [{ name: "postern-gate", env }];
  expect(toPod(trimPod(aPod({ spec: { containers } }))).gate?.guards).toBe(guards);
});
