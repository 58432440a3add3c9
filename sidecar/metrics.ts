import type { Metric, MetricObjectWithValues, MetricValue, Registry } from "prom-client";
import type { Metric as MetricDefinition } from "../core/metric.ts";
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
  /** Connections for which there was no room, and those that were closed to make room for one. */
  readonly crowded = { http1: { displaced: 0, refused: 0 }, http2: { displaced: 0, refused: 0 } };
  readonly counterFailures = { limits: 0, credits: 0 };
  /** Questions at the doors that were not decided. */
  readonly turnedAway = { untrusted: 0, unclear: 0, crowded: 0 };
  /** Requests of Envoy's rate limit service, by what was answered. */
  readonly rateLimits = { OK: 0, OVER_LIMIT: 0, UNDECIDED: 0 };
  readonly upstreamFailures = { unreachable: 0, unusable: 0, timeout: 0, busy: 0, stalled: 0 };
  /** Times that the app sent bytes that no request asked for. */
  upstreamUnrequested = 0;
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
  readonly connections: () => Readonly<Record<string, number>>;
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
  const [{ Registry }, { GATE_METRICS: of }] = await Promise.all([import("prom-client"), import("./metric-table.ts")]);
  const registry = new Registry();
  const add = ({ name, type, help }: MetricDefinition, read: () => Row[] | number) => {
    const get = async () => {
      const rows = read();
      const values = typeof rows === "number" ? [{ value: rows }] : rows;
      return { name, help, type, values: values.map(({ labels = {}, value }) => ({ labels, value })) };
    };
    registry.registerMetric({ name, get, reset() {} } as unknown as Metric);
  };
  const byLabel = (label: string, values: Readonly<Record<string, number>>): Row[] =>
    Object.entries(values).map(([key, value]) => ({ labels: { [label]: key }, value }));
  const overshot = (read: (of: { units: number; largestShare: number }) => number): Row[] =>
    Object.entries(readings.overshoots()).map(([counted, one]) => ({ labels: { counted }, value: read(one) }));

  add(of.requests, () => byLabel("code", metrics.decisions));
  add(of.auditedRefusals, () => metrics.auditedRefusals);
  add(of.departed, () => metrics.departed);
  add(of.cut, () => metrics.cut);
  add(of.counterFailures, () => byLabel("what", metrics.counterFailures));
  add(of.turnedAway, () => byLabel("why", metrics.turnedAway));
  add(of.rateLimits, () => byLabel("code", metrics.rateLimits));
  add(of.upstreamFailures, () => byLabel("why", metrics.upstreamFailures));
  add(of.upstreamUnrequested, () => metrics.upstreamUnrequested);
  add(of.faults, () => byLabel("where", metrics.faults));
  add(of.eventsDropped, readings.eventsDropped);
  add(of.overAdmitted, () => overshot(({ units }) => units));
  add(of.overAdmittedShare, () => overshot(({ largestShare }) => largestShare));
  add(of.podsAlive, readings.podsAlive);
  add(of.staleness, readings.stalenessS);
  add(of.usable, () => Number(readings.sourceUsable()));
  add(of.refused, () => byLabel("what", readings.refused()));
  add(of.policyVersion, readings.policyVersion);
  add(of.policyGeneration, readings.policyGeneration);
  add(of.policyGone, () => Number(readings.policyGone()));
  add(of.policyRefused, () => Number(readings.policyRefused()));
  add(of.ready, () => Number(readings.ready()));
  add(of.ongoing, readings.ongoing);
  add(of.connections, () => byLabel("protocol", readings.connections()));
  add(of.crowded, () =>
    Object.entries(metrics.crowded).flatMap(([protocol, counts]) =>
      Object.entries(counts).map(([done, value]) => ({ labels: { protocol, done }, value })),
    ),
  );
  add(of.places, () => byLabel("state", readings.places()));
  add(of.cache, () => byLabel("cache", readings.cacheSizes()));
  add(of.snapshotUsed, () => Number(readings.isRestored()));
  add(of.snapshotWrites, () => byLabel("result", { ...readings.snapshot()?.writes }));
  add(of.snapshotBytes, () => readings.snapshot()?.bytes ?? 0);
  add(of.snapshotRecords, () => {
    const { records, leftOut } = readings.snapshot() ?? { records: 0, leftOut: 0 };
    return byLabel("what", { written: records, leftOut });
  });
  add(of.cpu, () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  add(of.memory, () => process.memoryUsage.rss());
  const { name, help } = of.decision;
  registry.registerMetric({
    name,
    get: async () => latencyHistogram({ name, help }, metrics),
    reset() {},
  } as unknown as Metric);
  return registry;
}

function latencyHistogram(
  { name, help }: { name: string; help: string },
  metrics: Metrics,
): MetricObjectWithValues<MetricValue<string>> {
  const values: Array<{ metricName: string; labels: Record<string, string | number>; value: number }> = [];
  let count = 0;
  for (const [at, inBucket] of metrics.latencyBuckets.entries()) {
    count += inBucket;
    values.push({ metricName: `${name}_bucket`, labels: { le: BUCKETS[at] ?? "+Inf" }, value: count });
  }
  values.push({ metricName: `${name}_sum`, labels: {}, value: metrics.latencySumS });
  values.push({ metricName: `${name}_count`, labels: {}, value: count });
  return { name, help, type: "histogram", aggregator: "sum", values } as never;
}
