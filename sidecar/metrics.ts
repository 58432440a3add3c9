import type { Metric, MetricObjectWithValues, MetricValue, Registry } from "prom-client";
import type { Metric as MetricDefinition } from "../core/metric.ts";
import type { EdgeCounters } from "../edge/open.ts";
import type { Decision } from "./decision/evaluate-head.ts";
import type { SnapshotCounts } from "./snapshot/snapshot.ts";

/*
 * Metrics of a gate. Requests only increment plain numbers. The Prometheus client library is loaded at the first scrape, so that it does
 * not delay the start.
 */

/** Upper bounds of the latency buckets, in seconds. */
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
    DENIED: 0,
    MISSING_KEY: 0,
    MALFORMED: 0,
    TOO_MANY_ATTEMPTS: 0,
    UNAVAILABLE: 0,
  };
  /** Number of requests that Audit mode admitted although Enforce mode would have rejected them. */
  auditedRefusals = 0;
  /** Number of requests decided on data that was stale according to the policy (`onStale.after`). */
  staleDecisions = 0;
  /** Number of open connections and streams that were closed because their key was no longer valid. */
  connectionsRevoked = 0;
  /** Number of connections affected by the connection limit: `rejected` ones, and ones `evicted` to admit others. */
  readonly connectionLimit = { http1: { evicted: 0, rejected: 0 }, http2: { evicted: 0, rejected: 0 } };
  readonly counterFailures = { limits: 0, credits: 0 };
  /** Number of requests at the ext-auth endpoints that were not decided, by reason. */
  readonly extAuthRejected = { untrusted: 0, malformed: 0, overloaded: 0 };
  /** Number of requests to Envoy's rate limit service, by response. */
  readonly rateLimits = { OK: 0, OVER_LIMIT: 0, UNDECIDED: 0 };
  readonly upstreamFailures = { unreachable: 0, unusable: 0, timeout: 0, busy: 0, stalled: 0 };
  /** Number of times the app sent bytes without a request. */
  upstreamUnrequested = 0;
  /**
   * Number of unexpected errors: `exchange` counts those that ended one exchange, `stray` those that reached the handlers of the process.
   */
  readonly internalErrors = { exchange: 0, stray: 0 };
  readonly latencyBuckets = new Float64Array(BUCKETS.length + 1);
  latencySumS = 0;

  /** Counts a decision and records its duration. */
  observe(decision: Decision, latencyMs: number): void {
    this.decisions[decision] += 1;
    const seconds = latencyMs / 1000;
    this.latencySumS += seconds;
    let at = 0;
    while (at < BUCKETS.length && seconds > (BUCKETS[at] as number)) at++;
    this.latencyBuckets[at] = (this.latencyBuckets[at] as number) + 1;
  }
}

/** Functions that are called when Prometheus scrapes. */
export interface Readings {
  readonly stalenessS: () => number;
  readonly sourceUsable: () => boolean;
  readonly invalidValues: () => Readonly<Record<string, number>>;
  readonly policyVersion: () => number;
  readonly policyGeneration: () => number;
  readonly policyDeleted: () => boolean;
  readonly policyUnsupported: () => boolean;
  readonly ready: () => boolean;
  readonly inFlight: () => number;
  readonly connections: () => Readonly<Record<string, number>>;
  readonly upstreamRequests: () => Readonly<Record<string, number>>;
  readonly eventsDropped: () => number;
  readonly sharedIdentifiers: () => number;
  /** Returns the rejections by the active policy. */
  readonly rejections: () => readonly { readonly rule: string; readonly code: string; readonly count: number }[];
  readonly overAdmissions: EdgeCounters["overAdmissions"];
  readonly podsAlive: () => number;
  readonly cacheSizes: () => Readonly<Record<string, number>>;
  readonly isRestored: () => boolean;
  /** Returns the counts of the snapshot; `undefined` if no snapshot is configured. */
  readonly snapshot: () => SnapshotCounts | undefined;
}

/** Returns a function that renders all metrics as text. Labels never identify a key, an identity or a path. */
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
  const overAdmitted = (read: (of: { units: number; largestShare: number }) => number): Row[] =>
    Object.entries(readings.overAdmissions()).map(([mode, one]) => ({ labels: { mode }, value: read(one) }));

  add(of.requests, () => byLabel("code", metrics.decisions));
  add(of.auditedRefusals, () => metrics.auditedRefusals);
  add(of.staleDecisions, () => metrics.staleDecisions);
  add(of.connectionsRevoked, () => metrics.connectionsRevoked);
  add(of.counterFailures, () => byLabel("kind", metrics.counterFailures));
  add(of.sharedIdentifiers, readings.sharedIdentifiers);
  add(of.rejections, () => readings.rejections().map(({ count, ...labels }) => ({ labels, value: count })));
  add(of.extAuthRejected, () => byLabel("reason", metrics.extAuthRejected));
  add(of.rateLimits, () => byLabel("code", metrics.rateLimits));
  add(of.upstreamFailures, () => byLabel("reason", metrics.upstreamFailures));
  add(of.upstreamUnrequested, () => metrics.upstreamUnrequested);
  add(of.internalErrors, () => byLabel("source", metrics.internalErrors));
  add(of.eventsDropped, readings.eventsDropped);
  add(of.overAdmitted, () => overAdmitted(({ units }) => units));
  add(of.overAdmittedRatio, () => overAdmitted(({ largestShare }) => largestShare));
  add(of.podsAlive, readings.podsAlive);
  add(of.staleness, readings.stalenessS);
  add(of.usable, () => Number(readings.sourceUsable()));
  add(of.invalidValues, () => byLabel("kind", readings.invalidValues()));
  add(of.policyVersion, readings.policyVersion);
  add(of.policyGeneration, readings.policyGeneration);
  add(of.policyDeleted, () => Number(readings.policyDeleted()));
  add(of.policyUnsupported, () => Number(readings.policyUnsupported()));
  add(of.ready, () => Number(readings.ready()));
  add(of.inFlight, readings.inFlight);
  add(of.connections, () => byLabel("protocol", readings.connections()));
  add(of.connectionLimit, () =>
    Object.entries(metrics.connectionLimit).flatMap(([protocol, counts]) =>
      Object.entries(counts).map(([action, value]) => ({ labels: { protocol, action }, value })),
    ),
  );
  add(of.upstreamRequests, () => byLabel("state", readings.upstreamRequests()));
  add(of.cache, () => byLabel("cache", readings.cacheSizes()));
  add(of.snapshotActive, () => Number(readings.isRestored()));
  add(of.snapshotWrites, () => byLabel("result", { ...readings.snapshot()?.writes }));
  add(of.snapshotBytes, () => readings.snapshot()?.bytes ?? 0);
  add(of.snapshotRecords, () => {
    const { records, omitted } = readings.snapshot() ?? { records: 0, omitted: 0 };
    return byLabel("kind", { written: records, omitted });
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
