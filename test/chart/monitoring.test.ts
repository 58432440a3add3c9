import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { createOperatorMetrics } from "../../operator/metrics.ts";
import { createTrafficMetrics } from "../../operator/traffic-metrics.ts";
import { exposeMetrics, Metrics } from "../../sidecar/metrics.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const FILES = join(ROOT, "charts/postern/files");

/** What Prometheus adds to every series. */
const FROM_PROMETHEUS = ["namespace", "pod", "job", "instance"];

/** The labels of each metric. Of api-server and webhook as their sources declare them, beside the name. */
async function labelsByMetric(): Promise<Map<string, readonly string[]>> {
  const labels = new Map<string, readonly string[]>();
  for (const file of globSync("{api-server,operator}/**/*.ts", { cwd: ROOT })) {
    if (file.endsWith(".test.ts")) continue;
    const source = readFileSync(join(ROOT, file), "utf8");
    for (const [, name = "", rest = ""] of source.matchAll(/"(postern_[a-z0-9_]+)"((?:(?!"postern_).)*)/gs)) {
      const list = /^.{0,300}?labelNames: \[([^\]]*)\]/s.exec(rest.split("registers")[0] ?? "")?.[1] ?? "";
      labels.set(
        name,
        [...list.matchAll(/"(\w+)"/g)].map(([, label = ""]) => label),
      );
    }
  }
  // The operator's own registry, and what a gate really exposes, know better.
  const registry = new Registry();
  createOperatorMetrics({
    registry,
    controllers: new Map(),
    watchStates: () => [],
    source: { list: () => [] },
    syncs: { oldestMs: () => undefined },
    nowMs: () => 0,
  });
  createTrafficMetrics(registry);
  for (const metric of registry.getMetricsAsArray()) {
    labels.set(metric.name, (metric as unknown as { labelNames: string[] }).labelNames);
  }
  const one = () => ({ some: 1 });
  const [zero, no] = [() => 0, () => false];
  const gate = await exposeMetrics(new Metrics(), {
    ...{ stalenessS: zero, sourceUsable: no, refused: one, policyVersion: zero, policyGeneration: zero },
    ...{ policyGone: no, policyRefused: no, ready: no, ongoing: zero, places: one, eventsDropped: zero },
    ...{ podsAlive: zero, cacheSizes: one, isRestored: no },
    overshoots: () => ({ async: { units: 0, largestShare: 0 }, outage: { units: 0, largestShare: 0 } }),
    snapshot: () => ({ writes: { written: 0, failed: 0 }, records: 0, bytes: 0, leftOut: 0 }),
  })();
  for (const [, name = "", pairs = ""] of gate.text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    labels.set(
      name,
      [...pairs.matchAll(/(\w+)=/g)].map(([, label = ""]) => label),
    );
  }
  return labels;
}

const known = await labelsByMetric();
const labelsOf = (series: string): readonly string[] | undefined => {
  const metric = series.replace(/_bucket$/, "");
  return known.get(series) ?? (known.has(metric) ? [...(known.get(metric) ?? []), "le"] : undefined);
};

const alerts = (
  parse(readFileSync(join(FILES, "alerts.yaml"), "utf8")) as Array<{ rules: Array<{ alert: string; expr: string }> }>
).flatMap(({ rules }) => rules.map(({ alert, expr }) => ({ where: alert, expr })));

const panels = globSync("dashboards/*.json", { cwd: FILES }).flatMap((name) => {
  const dashboard = JSON.parse(readFileSync(join(FILES, name), "utf8")) as {
    panels: Array<{ title: string; targets?: Array<{ expr: string }> }>;
  };
  return dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ where: `${name}: ${title}`, expr })),
  );
});

test("there are alerts and dashboards", () => {
  expect(alerts.length).toBeGreaterThan(25);
  expect(panels.length).toBeGreaterThan(20);
});

test("the labels of a metric are found wherever it is declared", () => {
  expect(labelsOf("postern_degraded")).toEqual(["reason"]);
  expect(labelsOf("postern_api_requests_total")).toEqual(["procedure", "status"]);
  expect(labelsOf("postern_background_failures_total")).toEqual(["loop"]);
  expect(labelsOf("postern_operator_queue_wait_seconds_bucket")).toEqual(["kind", "le"]);
  expect(labelsOf("postern_operator_webhook_calls_total")).toEqual(["path", "outcome"]);
  expect(labelsOf("postern_sidecar_requests_total")).toEqual(["code"]);
  expect(labelsOf("postern_sidecar_ready")).toEqual([]);
  expect(labelsOf("postern_sidecar_unknown")).toBeUndefined();
});

test.each([...alerts, ...panels])("$where asks for metrics that are exported, by labels that they have", ({ expr }) => {
  const series = [...expr.matchAll(/\b(postern_\w+)(?:\{([^}]*)\})?/g)];
  expect(series.length).toBeGreaterThan(0);
  for (const [, name = "", matchers = ""] of series) {
    const labels = labelsOf(name);
    expect(labels, name).toBeDefined();
    const asked = [...matchers.matchAll(/(\w+)\s*[!=]~?/g)].map(([, label = ""]) => label);
    expect([...FROM_PROMETHEUS, ...(labels ?? [])], name).toEqual(expect.arrayContaining(asked));
  }
  const all = series.flatMap(([, name = ""]) => labelsOf(name) ?? []);
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/\s*,\s*/));
  expect([...FROM_PROMETHEUS, ...all]).toEqual(expect.arrayContaining(grouped));
});
