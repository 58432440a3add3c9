import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { createOperatorMetrics, type MetricsOptions } from "./metrics.ts";
import { anObject } from "./test/builders.ts";
import { createTrafficMetrics } from "./traffic-metrics.ts";

const DASHBOARD = join(import.meta.dirname, "../charts/postern/files/dashboards/operator.json");

function open(options: Partial<MetricsOptions> = {}) {
  const registry = new Registry();
  const metrics = createOperatorMetrics({
    registry,
    controllers: new Map(),
    watchStates: () => [],
    source: { list: () => [] },
    syncs: { oldestMs: () => undefined },
    nowMs: () => 0,
    ...options,
  });
  return { registry, ...metrics, ...createTrafficMetrics(registry) };
}

const linesOf = async (registry: Registry, name: string): Promise<string[]> =>
  (await registry.metrics()).split("\n").filter((line) => line.startsWith(name));

test("operator queue depth metric is read at scrape time", async () => {
  let depth = 0;
  const controllers = new Map([
    [
      "Role",
      {
        get depth() {
          return depth;
        },
      },
    ],
  ]);
  const { registry } = open({ controllers });
  depth = 7;
  expect(await linesOf(registry, "postern_operator_queue_depth")).toEqual([
    'postern_operator_queue_depth{kind="Role"} 7',
  ]);
});

test("operator metrics count policies by condition and unguarded pods", async () => {
  const policy = (name: string, status: unknown) => anObject("ApiKeyPolicy", {}, { name, status });
  const enforced = (status: string) => ({ type: "Enforced", status });
  const objects = [
    policy("open", { conditions: [enforced("False"), { type: "Ready", status: "True" }], dataPlane: { unguarded: 2 } }),
    policy("other", { conditions: [enforced("False")], dataPlane: { pods: 1, unguarded: 1 } }),
    policy("guarded", { conditions: [enforced("True"), { type: "Stale", status: "True" }], dataPlane: { pods: 3 } }),
    policy("new", undefined),
    policy("broken", { conditions: "none", dataPlane: 3 }),
  ];
  const { registry } = open({ source: { list: (kind) => (kind === "ApiKeyPolicy" ? objects : []) } });
  expect(await linesOf(registry, "postern_operator_unguarded_pods")).toEqual(["postern_operator_unguarded_pods 3"]);
  const counted = await linesOf(registry, "postern_operator_policies");
  expect(counted.filter((line) => !line.endsWith(" 0"))).toEqual([
    'postern_operator_policies{condition="Enforced",status="True"} 1',
    'postern_operator_policies{condition="Enforced",status="False"} 2',
    'postern_operator_policies{condition="Stale",status="True"} 1',
  ]);
  // Each condition exports all statuses, because an alert cannot use a missing series.
  expect(counted).toHaveLength(15);
  expect(await linesOf(registry, 'postern_operator_objects{kind="ApiKeyPolicy",ready="Unknown"}')).toEqual([
    'postern_operator_objects{kind="ApiKeyPolicy",ready="Unknown"} 4',
  ]);
});

test("watch age metric is the maximum over namespaces, and infinite if a namespace is not listed yet", async () => {
  const state = { namespace: "a", failure: undefined };
  const { registry } = open({
    watchStates: () => [
      { ...state, resource: "roles", ageMs: 30_000 },
      { ...state, resource: "roles", ageMs: 1_000, namespace: "b" },
      { ...state, resource: "pods", ageMs: undefined },
      { ...state, resource: "pods", ageMs: 5, namespace: "b" },
    ],
  });
  expect(await linesOf(registry, "postern_operator_watch_age_seconds")).toEqual([
    'postern_operator_watch_age_seconds{resource="roles"} 30',
    'postern_operator_watch_age_seconds{resource="pods"} +Inf',
  ]);
});

test("operator metrics count a failed reconcile as a result and a retry", async () => {
  const { registry, observe } = open();
  observe({ name: "Role", result: "success", durationMs: 5 });
  observe({ name: "Role", result: "error", durationMs: 5 });
  expect(await linesOf(registry, "postern_operator_reconciles_total")).toEqual([
    'postern_operator_reconciles_total{kind="Role",result="success"} 1',
    'postern_operator_reconciles_total{kind="Role",result="error"} 1',
  ]);
  expect(await linesOf(registry, "postern_operator_retries_total")).toEqual([
    'postern_operator_retries_total{kind="Role"} 1',
  ]);
});

test("operator metrics count an API request without a response as an error", async () => {
  const { registry, observeKubernetes } = open();
  observeKubernetes({ method: "PATCH", resource: "roles/status", status: 403, durationMs: 5 });
  observeKubernetes({ method: "GET", resource: "leases", status: undefined, durationMs: 5 });
  expect(await linesOf(registry, "postern_operator_kubernetes_requests_total")).toEqual([
    'postern_operator_kubernetes_requests_total{method="PATCH",resource="roles/status",code="403"} 1',
    'postern_operator_kubernetes_requests_total{method="GET",resource="leases",code="error"} 1',
  ]);
});

describe("the dashboard", () => {
  const expressions = [...readFileSync(DASHBOARD, "utf8").matchAll(/"(?:expr|query)": "((?:[^"\\]|\\.)*)"/g)].map(
    ([, expression = ""]) => expression,
  );
  const shown = new Set(expressions.flatMap((expression) => expression.match(/postern_[a-z_]+/g) ?? []));
  const nameOf = (series: string) => series.replace(/_(bucket|sum|count)$/, "");

  test("operator Grafana dashboard uses only existing metrics and labels", async () => {
    const metrics = open().registry.getMetricsAsArray();
    const known = new Map(metrics.map(({ name, ...rest }) => [name, (rest as { labelNames?: string[] }).labelNames]));
    for (const series of shown) expect([...known.keys()], series).toContain(nameOf(series));
    for (const expression of expressions) {
      for (const [, series = "", matchers = ""] of expression.matchAll(/(postern_[a-z_]+)\{([^}]*)\}/g)) {
        const labels = [...matchers.matchAll(/(\w+)\s*[!=]/g)].map(([, label = ""]) => label);
        expect(["job", "le", ...(known.get(nameOf(series)) ?? [])], expression).toEqual(expect.arrayContaining(labels));
      }
    }
  });

  test("operator Grafana dashboard shows every operator metric", () => {
    const names = open()
      .registry.getMetricsAsArray()
      .map(({ name }) => name);
    expect([...new Set([...shown].map(nameOf))].sort()).toEqual(names.sort());
  });
});
