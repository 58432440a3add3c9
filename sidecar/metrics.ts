import type { Metric, MetricObjectWithValues, MetricValue, Registry } from "prom-client";
import type { EdgeCounters } from "../edge/open.ts";
import type { Decision } from "./gate/judge.ts";
import type { SnapshotCounts } from "./snapshot/snapshot.ts";

/*
 * Requests only increment plain numbers; the Prometheus format is made from them at scrape time. The client library is
 * loaded only then, so that it does not slow the start.
 */

/** Upper bounds in seconds. */
const BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1] as const;

export class Metrics {
  readonly decisions: Record<Decision, number> = {
    VALID: 0,
    NOT_FOUND: 0,
    FORBIDDEN: 0,
    INSUFFICIENT_PERMISSIONS: 0,
    USAGE_EXCEEDED: 0,
    RATE_LIMITED: 0,
    DISABLED: 0,
    EXPIRED: 0,
    ANONYMOUS: 0,
    MISSING_KEY: 0,
    MALFORMED: 0,
    UNAVAILABLE: 0,
  };
  /** Requests that Audit mode admitted although they would have been refused. */
  auditedRefusals = 0;
  /** Requests decided on data staler than the policy's first bound. */
  departed = 0;
  /** Open connections and streams that were ended because their key was no longer valid. */
  cut = 0;
  readonly counterFailures = { limits: 0, credits: 0 };
  /** Questions at the doors that were not decided. */
  readonly turnedAway = { untrusted: 0, unclear: 0 };
  /** Requests of Envoy's rate limit service, by what was answered. */
  readonly rateLimits = { OK: 0, OVER_LIMIT: 0, UNDECIDED: 0 };
  readonly upstreamFailures = { unreachable: 0, unusable: 0, timeout: 0, busy: 0, stalled: 0 };
  /** Unexpected errors: those that ended one exchange, and those that only the process itself caught. */
  readonly faults = { exchange: 0, stray: 0 };
  readonly latencyBuckets = new Float64Array(BUCKETS.length + 1);
  latencySumS = 0;

  /** How long the gate took to decide. */
  observe(decision: Decision, latencyMs: number): void {
    this.decisions[decision] += 1;
    const seconds = latencyMs / 1000;
    this.latencySumS += seconds;
    let at = 0;
    while (at < BUCKETS.length && seconds > (BUCKETS[at] as number)) at++;
    this.latencyBuckets[at] = (this.latencyBuckets[at] as number) + 1;
  }
}

/** Read when Prometheus scrapes. */
export interface Readings {
  readonly stalenessS: () => number;
  readonly sourceUsable: () => boolean;
  readonly refused: () => Readonly<Record<string, number>>;
  readonly policyVersion: () => number;
  readonly policyGeneration: () => number;
  readonly policyGone: () => boolean;
  readonly policyRefused: () => boolean;
  readonly ready: () => boolean;
  readonly ongoing: () => number;
  readonly places: () => Readonly<Record<string, number>>;
  readonly eventsDropped: () => number;
  readonly overshoots: EdgeCounters["overshoots"];
  readonly podsAlive: () => number;
  readonly cacheSizes: () => Readonly<Record<string, number>>;
  readonly isRestored: () => boolean;
  /** undefined when none is kept. */
  readonly snapshot: () => SnapshotCounts | undefined;
}

/** Returns a function that writes all metrics as text. No label names a key, an identity or a path. */
export function exposeMetrics(metrics: Metrics, readings: Readings): () => Promise<{ type: string; text: string }> {
  let registry: Promise<Registry> | undefined;
  return async () => {
    registry ??= buildRegistry(metrics, readings);
    const { contentType, metrics: write } = await registry.then((built) => ({
      contentType: built.contentType,
      metrics: () => built.metrics(),
    }));
    return { type: contentType, text: await write() };
  };
}

type Row = { readonly labels?: Readonly<Record<string, string>>; readonly value: number };

async function buildRegistry(metrics: Metrics, readings: Readings): Promise<Registry> {
  const { Registry } = await import("prom-client");
  const registry = new Registry();
  const add = (type: "counter" | "gauge", name: string, help: string, read: () => Row[] | number) => {
    const get = async () => {
      const rows = read();
      const values = typeof rows === "number" ? [{ value: rows }] : rows;
      return { name, help, type, values: values.map(({ labels = {}, value }) => ({ labels, value })) };
    };
    registry.registerMetric({ name, get, reset() {} } as unknown as Metric);
  };
  const byLabel = (label: string, values: Readonly<Record<string, number>>): Row[] =>
    Object.entries(values).map(([key, value]) => ({ labels: { [label]: key }, value }));

  add("counter", "postern_sidecar_requests_total", "Requests by what was decided.", () =>
    byLabel("code", metrics.decisions),
  );
  add(
    "counter",
    "postern_sidecar_audited_refusals_total",
    "Let through by Audit mode only.",
    () => metrics.auditedRefusals,
  );
  add(
    "counter",
    "postern_sidecar_departed_total",
    "Decided on knowledge older than onStale.after.",
    () => metrics.departed,
  );
  add(
    "counter",
    "postern_sidecar_cut_total",
    "Open connections ended because their key is no longer good.",
    () => metrics.cut,
  );
  add(
    "counter",
    "postern_sidecar_counter_failures_total",
    "Requests for which the shared counters could not say.",
    () => byLabel("what", metrics.counterFailures),
  );
  add("counter", "postern_sidecar_turned_away_total", "Questions of gateways that were not decided.", () =>
    byLabel("why", metrics.turnedAway),
  );
  add("counter", "postern_sidecar_rate_limits_total", "Requests of the rate limit service by what was answered.", () =>
    byLabel("code", metrics.rateLimits),
  );
  add("counter", "postern_sidecar_upstream_failures_total", "Requests that the app did not answer.", () =>
    byLabel("why", metrics.upstreamFailures),
  );
  add(
    "counter",
    "postern_sidecar_faults_total",
    "Faults of the sidecar itself, each of which ended one exchange.",
    () => byLabel("where", metrics.faults),
  );
  add("counter", "postern_sidecar_events_dropped_total", "Verification events that were lost.", readings.eventsDropped);
  add(
    "counter",
    "postern_sidecar_over_admitted_total",
    "Units let in beyond limits that were not counted strictly.",
    () => Object.entries(readings.overshoots()).map(([counted, { units }]) => ({ labels: { counted }, value: units })),
  );
  const largest = "By how much a limit was exceeded at most since the start, as a part of the limit.";
  add("gauge", "postern_sidecar_over_admitted_share_max", largest, () =>
    Object.entries(readings.overshoots()).map(([counted, of]) => ({ labels: { counted }, value: of.largestShare })),
  );
  add(
    "gauge",
    "postern_sidecar_pods_alive",
    "Pods that enforce the policy, as last heard of; 0 for never.",
    readings.podsAlive,
  );
  add(
    "gauge",
    "postern_sidecar_staleness_seconds",
    "Age of the newest knowledge; +Inf before the first.",
    readings.stalenessS,
  );
  add("gauge", "postern_sidecar_source_usable", "0 when the last read of records from the store was not usable.", () =>
    Number(readings.sourceUsable()),
  );
  add("counter", "postern_sidecar_refused_total", "What was read from the store and was refused as invalid.", () =>
    byLabel("what", readings.refused()),
  );
  add("gauge", "postern_sidecar_policy_version", "Version of the policy in force; 0 for none.", readings.policyVersion);
  add("gauge", "postern_sidecar_policy_generation", "Generation of its manifest.", readings.policyGeneration);
  add("gauge", "postern_sidecar_policy_gone", "1 when the policy in force was deleted.", () =>
    Number(readings.policyGone()),
  );
  add("gauge", "postern_sidecar_policy_refused", "1 while a newer policy is of a release that is not known here.", () =>
    Number(readings.policyRefused()),
  );
  add("gauge", "postern_sidecar_ready", "1 while requests can be decided.", () => Number(readings.ready()));
  add("gauge", "postern_sidecar_ongoing", "Requests and connections under way.", readings.ongoing);
  add("gauge", "postern_sidecar_places", "Places at the app: taken, waited for, and taken by upgrades.", () =>
    byLabel("state", readings.places()),
  );
  add("gauge", "postern_sidecar_cache_entries", "What the caches hold.", () => byLabel("cache", readings.cacheSizes()));
  add("gauge", "postern_sidecar_snapshot_used", "1 while all that is known is from the snapshot on disk.", () =>
    Number(readings.isRestored()),
  );
  add("counter", "postern_sidecar_snapshot_writes_total", "Attempts to write the snapshot on disk.", () =>
    byLabel("result", { ...readings.snapshot()?.writes }),
  );
  add("gauge", "postern_sidecar_snapshot_bytes", "Size of the last one.", () => readings.snapshot()?.bytes ?? 0);
  add("gauge", "postern_sidecar_snapshot_records", "Records in the last one, and those without room in it.", () => {
    const { records, leftOut } = readings.snapshot() ?? { records: 0, leftOut: 0 };
    return byLabel("what", { written: records, leftOut });
  });
  add("counter", "process_cpu_seconds_total", "CPU time used.", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  add("gauge", "process_resident_memory_bytes", "Memory resident.", () => process.memoryUsage.rss());
  const latency = "postern_sidecar_decision_seconds";
  registry.registerMetric({
    name: latency,
    get: async () => latencyHistogram(latency, metrics),
    reset() {},
  } as unknown as Metric);
  return registry;
}

function latencyHistogram(name: string, metrics: Metrics): MetricObjectWithValues<MetricValue<string>> {
  const values: Array<{ metricName: string; labels: Record<string, string | number>; value: number }> = [];
  let count = 0;
  for (const [at, inBucket] of metrics.latencyBuckets.entries()) {
    count += inBucket;
    values.push({ metricName: `${name}_bucket`, labels: { le: BUCKETS[at] ?? "+Inf" }, value: count });
  }
  values.push({ metricName: `${name}_sum`, labels: {}, value: metrics.latencySumS });
  values.push({ metricName: `${name}_count`, labels: {}, value: count });
  return { name, help: "How long the gate took to decide.", type: "histogram", aggregator: "sum", values } as never;
}
