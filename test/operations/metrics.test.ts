import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CREDENTIALS_PATH } from "../../core/gates/credentials.ts";
import type { Metric } from "../../core/metric.ts";
import { METRIC_GROUPS, METRICS, type Part } from "../../scripts/metric-groups.ts";
import { guardedPod, openWebhookWorld } from "../e2e/webhook-world.ts";
import { openSystem } from "../faults/system.ts";
import { createTestClickhouse } from "../harness/clickhouse.ts";
import { call, startApp } from "../harness/gate.ts";
import { KUBERNETES_START_MS } from "../harness/kubernetes.ts";
import { findGoProgram } from "../harness/parts/go-program.ts";
import { runWithJson } from "../harness/run-with-json.ts";
import { guardApp } from "../harness/sidecar-process.ts";
import { waitFor } from "../harness/wait.ts";
import { COMPONENT_IMPORTS } from "../import-rules.ts";
import { readScrape, type Scrape, scrape } from "./scrapes.ts";

/* Compares docs/operations/metrics.md, generated from METRIC_GROUPS, with the metrics that each component exports. */

const ROOT = resolve(import.meta.dirname, "../..");

interface Scraped extends Scrape {
  readonly part: Part;
  /** Values of `only` in the groups that apply to this process. */
  readonly settings: readonly string[];
}

const INGESTS = "without `--ingest off`";
const ON_POSTGRES = "without `--analytics-url`";
const ON_CLICKHOUSE = "with `--analytics-url`";
const FOR_GATES = "with `--gate-credentials-cluster`";

/** Scrapes of each running component after some activity. */
const scraped: Scraped[] = [];
const closers: Array<() => Promise<unknown>> = [];
const look = async (part: Part, url: string | undefined, settings: readonly string[]) =>
  scraped.push({ part, settings, ...(await scrape(`${url}/metrics`)) });

beforeAll(async () => {
  const world = await openWebhookWorld();
  closers.push(() => world.close());
  const system = await openSystem({ whenDone: (close) => closers.push(close) });
  const clickhouse = await createTestClickhouse();
  closers.push(() => clickhouse.drop());

  const api = await system.spawnApi({
    POSTERN_GATE_CREDENTIALS_CLUSTER: "main",
    KUBECONFIG: world.cluster.kubeconfigPath,
  });
  const { apiId } = await api.data("apis.createApi", { name: "payments" });
  const { key } = await api.data("keys.createKey", { apiId });
  await api.data("keys.verifyKey", { key });
  await api.data("analytics.getVerifications", { query: "SELECT count() AS n FROM key_verifications_v1" });
  for (const path of [CREDENTIALS_PATH, "/v2/keys.verifyKey", `/${"x".repeat(50)}`, "/v1/keys.verifyKey"]) {
    await fetch(`${api.url}${path}`, { method: "POST" });
  }
  await look("api-server", api.url, [INGESTS, ON_POSTGRES, FOR_GATES]);
  const bare = await system.spawnApi({ POSTERN_INGEST: "off" });
  await look("api-server", bare.url, [ON_POSTGRES]);
  const ingests = [
    { env: {}, settings: [INGESTS, ON_POSTGRES] },
    { env: { ANALYTICS_URL: clickhouse.url }, settings: [INGESTS, ON_CLICKHOUSE] },
  ];
  for (const { env, settings } of ingests) {
    const { adminUrl } = await system.spawnIngest(env);
    await waitFor("the ingestion to be ready", async () => (await fetch(`${adminUrl}/readyz`)).ok);
    await look("ingest", adminUrl, settings);
  }

  const operator = await world.startOperator();
  const namespace = await world.namespace();
  await world.policy(namespace, "orders");
  await waitFor("the operator and its webhook to have done something", async () => {
    await world.create(namespace, guardedPod());
    const { text } = await scrape(`${operator.adminUrl}/metrics`);
    return /webhook_calls_total\{.*allowed/.test(text) && /reconciles_total\{kind="ApiKeyPolicy"/.test(text);
  });
  await look("operator", operator.adminUrl, ["with the webhook"]);

  const app = await startApp();
  closers.push(() => app.close());
  const gate = await guardApp({ upstream: app.url });
  closers.push(() => gate.close());
  await call(gate.port, { path: "/" });
  await call(gate.port, { path: "/", headers: { authorization: "Bearer none" } });
  scraped.push({ part: "sidecar", settings: [], ...readScrape(await gate.metrics()) });
}, KUBERNETES_START_MS);
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

const byName = new Map<string, Metric>(METRICS.map((metric) => [metric.name, metric]));

test("each component exports exactly the listed metrics and types", () => {
  expect(scraped.map(({ part }) => part)).toEqual([
    "api-server",
    "api-server",
    "ingest",
    "ingest",
    "operator",
    "sidecar",
  ]);
  for (const { part, settings, types } of scraped) {
    const groups = METRIC_GROUPS.filter(
      ({ parts, only }) => parts.includes(part) && (only === undefined || settings.includes(only)),
    );
    const listed = groups.flatMap(({ metrics }) => metrics.map(({ name, type }) => `${name} ${type}`));
    expect([...types].map(([name, type]) => `${name} ${type}`).sort(), part).toEqual(listed.sort());
  }
  const all = new Set(scraped.flatMap(({ types }) => [...types.keys()]));
  expect(METRICS.filter(({ name }) => !all.has(name))).toEqual([]);
});

test("each metric has exactly the listed labels and values", () => {
  for (const { part, series } of scraped) {
    expect(series.length, part).toBeGreaterThan(10);
    for (const { metric, labels } of series) {
      const listed = byName.get(metric)?.labels ?? {};
      expect(Object.keys(labels).sort(), metric).toEqual(Object.keys(listed).sort());
      for (const [label, values] of Object.entries(listed)) {
        if (typeof values !== "string") expect(values, `${metric} ${label}`).toContain(labels[label]);
      }
    }
  }
});

test("metric labels never contain caller input", () => {
  const api = scraped[0];
  const procedures = new Set(api?.series.map(({ labels }) => labels.procedure));
  expect(procedures).toContain("unknown");
  expect([...procedures].filter((one) => one?.includes("xxx"))).toEqual([]);
  for (const { series } of scraped)
    for (const { labels } of series) expect(Object.values(labels).join()).not.toMatch(/\b(ws|api|key|id)_\w{6}/);
});

/** Accepted findings of the linter, with the reason. */
const LEFT: Readonly<Record<string, string>> = {
  "postern_sidecar_counter_failures_total: metric name should not include type 'counter'":
    "the counters of limits and credits are meant, not the type",
};

test("metric names, help texts and types follow Prometheus conventions", async () => {
  const lint = await findGoProgram({
    name: "promlint",
    source: "operations/promlint.go",
    modules: ["github.com/prometheus/client_golang@v1.22.0"],
  });
  const found = new Set<string>();
  for (const { text } of scraped) {
    for (const problem of (await runWithJson(lint, [], text)).split("\n")) if (problem !== "") found.add(problem);
  }
  expect([...found].sort()).toEqual(Object.keys(LEFT).sort());
  // The linter detects an error.
  expect(await runWithJson(lint, [], '# TYPE postern_waitMs counter\npostern_waitMs{K="1"} 1\n')).toMatch(/_total/);
}, 1_200_000);

test("metric name ends with its unit", () => {
  for (const { name, unit, type } of METRICS) {
    const ending = name.replace(/_total$/, "");
    expect(name.endsWith("_total"), name).toBe(type === "counter");
    expect(ending.endsWith("_timestamp_seconds"), name).toBe(unit === "Unix seconds");
    expect(/(?<!timestamp)_seconds$/.test(ending), name).toBe(unit === "seconds");
    expect(ending.endsWith("_bytes"), name).toBe(unit === "bytes");
  }
  expect(byName.size).toBe(METRICS.length);
});

test("metric names occur only in their definition, and texts name existing metrics", () => {
  const known = (name: string) => byName.has(name) || byName.has(name.replace(/_(bucket|sum|count)$/, ""));
  const defined: string[] = [];
  for (const file of globSync(`{${Object.keys(COMPONENT_IMPORTS).join()}}/**/*.ts`, { cwd: ROOT })) {
    if (file.includes(".test.ts")) continue;
    const source = readFileSync(join(ROOT, file), "utf8");
    defined.push(...[...source.matchAll(/\bname: "((?:postern|process)_\w+)"/g)].map(([, name = ""]) => name));
    expect(/new (?:Counter|Gauge|Histogram|Summary)\(\{\s*name:/.test(source), file).toBe(false);
  }
  expect(defined.sort()).toEqual([...byName.keys()].sort());
  const texts = globSync(["docs/**/*.md", "charts/postern/**/*.{yaml,md}"], { cwd: ROOT });
  const wrong = texts.flatMap((file) => {
    const names = readFileSync(join(ROOT, file), "utf8").matchAll(
      /\bpostern_(?:sidecar|operator|api|relay|events|rollup|key_queue|store|retention|clickhouse|projection|postgres|outbox|background|degraded)\w*/g,
    );
    return [...names]
      .map(([name]) => name)
      .filter((name) => !known(name))
      .map((name) => `${file}: ${name}`);
  });
  expect(wrong).toEqual([]);
});
