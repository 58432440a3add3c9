import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import * as z from "zod";
import { defineMetrics, exported } from "../core/metric.ts";
import { RECONCILERS } from "./reconcilers/registry.ts";
import type { SyncTimes } from "./reconcilers/sync-times.ts";
import type { Controller, ControllerOptions } from "./runtime/controller.ts";
import type { WatchState } from "./runtime/watches.ts";
import type { ManifestSource } from "./source/contract.ts";

export interface OperatorMetrics {
  readonly observe: NonNullable<ControllerOptions["observe"]>;
  readonly observeWait: NonNullable<ControllerOptions["observeWait"]>;
  /** Called after each poll of a workspace's policy statuses. */
  readonly observePoll: (outcome: { readonly result: "success" | "error"; readonly durationMs: number }) => void;
  readonly setLeading: (isLeading: boolean) => void;
}

export interface MetricsOptions {
  readonly registry: Registry;
  readonly controllers: ReadonlyMap<string, Pick<Controller, "depth">>;
  readonly watchStates: () => readonly WatchState[];
  readonly source: Pick<ManifestSource, "list">;
  readonly syncs: Pick<SyncTimes, "oldestMs">;
  readonly nowMs: () => number;
}

/** Conditions that alerts use. */
const POLICY_CONDITIONS = ["Enforced", "Stale", "Unsupported", "LimitsExceeded", "Bypassable"] as const;
const STATUSES = ["True", "False", "Unknown"] as const;
const KINDS = RECONCILERS.map(({ kind }) => kind);

export const OBJECT_METRICS = defineMetrics({
  reconciles: {
    name: "postern_operator_reconciles_total",
    type: "counter",
    help: "Reconciles by kind and result",
    unit: "reconciles",
    labels: { kind: KINDS, result: ["success", "error"] },
    bad: "Mostly errors: see `postern_operator_retries_total`.",
  },
  duration: {
    name: "postern_operator_reconcile_duration_seconds",
    type: "histogram",
    help: "Duration of reconciles",
    unit: "seconds",
    labels: { kind: KINDS },
    bad: "p99 above 3: see `postern_operator_api_call_duration_seconds` and `postern_operator_kubernetes_request_duration_seconds`.",
  },
  retries: {
    name: "postern_operator_retries_total",
    type: "counter",
    help: "Failed reconciles that are retried",
    unit: "reconciles",
    labels: { kind: KINDS },
    bad: "More than three a minute (PosternReconcileErrors).",
  },
  waits: {
    name: "postern_operator_queue_wait_duration_seconds",
    type: "histogram",
    help: "Time that objects wait in the queue",
    unit: "seconds",
    labels: { kind: KINDS },
    bad: "p99 above 30 (PosternQueueLatencyHigh).",
  },
  depth: {
    name: "postern_operator_queue_depth",
    type: "gauge",
    help: "Objects in the queue or being reconciled",
    unit: "objects",
    labels: { kind: KINDS },
    bad: "Above 100 for 15 minutes (PosternQueueBacklog).",
  },
  watchAge: {
    name: "postern_operator_watch_age_seconds",
    type: "gauge",
    help: "Time since the watch of a resource was last known to be complete; Inf before the first list",
    unit: "seconds",
    labels: { resource: "the plural of a watched kind, such as `apikeypolicies` or `pods`" },
    bad: "Above 120 (PosternWatchStale).",
  },
  leading: {
    name: "postern_operator_leading",
    type: "gauge",
    help: "1 while this replica is the leader",
    unit: "1 or 0",
    bad: "Sum over all replicas not 1 for 30 s (PosternOperatorDown).",
  },
  polls: {
    name: "postern_operator_policy_poll_duration_seconds",
    type: "histogram",
    help: "Duration of listing the policy statuses of a workspace",
    unit: "seconds",
    labels: { result: ["success", "error"] },
    bad: "Errors, or above 3: the api-server is down or slow, and policy statuses are outdated.",
  },
  oldestSync: {
    name: "postern_operator_oldest_sync_seconds",
    type: "gauge",
    help: "Time since the least recently reconciled object was in sync",
    unit: "seconds",
    labels: { kind: KINDS },
    bad: "Above 900: an object fails repeatedly, or the queue is long. See `kubectl get postern -A`.",
  },
  objects: {
    name: "postern_operator_objects",
    type: "gauge",
    help: "Objects by kind and status of their Ready condition",
    unit: "objects",
    labels: { kind: KINDS, ready: STATUSES },
    bad: '`ready="False"` above 0 for 15 minutes (PosternObjectsNotReady).',
  },
  policies: {
    name: "postern_operator_policies",
    type: "gauge",
    help: "Policies by condition and status",
    unit: "policies",
    labels: { condition: POLICY_CONDITIONS, status: STATUSES },
    bad: "`Stale` (PosternPolicyStale), `Unsupported` (PosternPolicyUnsupported), `LimitsExceeded` (PosternLimitsExceeded) or `Bypassable` is True; `Enforced` is False: pods without a gate or without reports.",
  },
  unguarded: {
    name: "postern_operator_unguarded_pods",
    type: "gauge",
    help: "Running pods that a policy selects and that lack its gate, according to policy statuses",
    unit: "pods",
    bad: "Above 0 for ten minutes (PosternUnguardedPods).",
  },
  silent: {
    name: "postern_operator_silent_pods",
    type: "gauge",
    help: "Running pods whose gate does not report, according to policy statuses",
    unit: "pods",
    bad: "Above 0 for ten minutes (PosternSilentPods).",
  },
});

/** Creates the metrics of the operator. Labels never contain the name of an object, because there is no limit on the number of objects. */
export function createOperatorMetrics(options: MetricsOptions): OperatorMetrics {
  const { registry, controllers, watchStates, source, syncs, nowMs } = options;
  const registers = [registry];
  const reconciles = new Counter({
    ...exported(OBJECT_METRICS.reconciles),
    registers,
  });
  const duration = new Histogram({
    ...exported(OBJECT_METRICS.duration),
    buckets: [0.005, 0.02, 0.05, 0.1, 0.3, 1, 3, 10],
    registers,
  });
  const retries = new Counter({
    ...exported(OBJECT_METRICS.retries),
    registers,
  });
  const waits = new Histogram({
    ...exported(OBJECT_METRICS.waits),
    buckets: [0.005, 0.05, 0.3, 1, 3, 10, 30, 100],
    registers,
  });
  new Gauge({
    ...exported(OBJECT_METRICS.depth),
    registers,
    collect() {
      for (const [kind, { depth }] of controllers) this.set({ kind }, depth);
    },
  });
  new Gauge({
    ...exported(OBJECT_METRICS.watchAge),
    registers,
    collect() {
      this.reset();
      const oldest = new Map<string, number>();
      for (const { resource, ageMs = Number.POSITIVE_INFINITY } of watchStates()) {
        oldest.set(resource, Math.max(ageMs, oldest.get(resource) ?? 0));
      }
      for (const [resource, ageMs] of oldest) this.set({ resource }, ageMs / 1000);
    },
  });
  const leading = new Gauge({
    ...exported(OBJECT_METRICS.leading),
    registers,
  });
  const polls = new Histogram({
    ...exported(OBJECT_METRICS.polls),
    buckets: [0.02, 0.1, 0.3, 1, 3, 10, 30],
    registers,
  });
  new Gauge({
    ...exported(OBJECT_METRICS.oldestSync),
    registers,
    collect() {
      this.reset();
      for (const { kind } of RECONCILERS) {
        const oldestMs = syncs.oldestMs(source.list(kind));
        if (oldestMs !== undefined) this.set({ kind }, (nowMs() - oldestMs) / 1000);
      }
    },
  });
  new Gauge({
    ...exported(OBJECT_METRICS.objects),
    registers,
    collect() {
      this.reset();
      for (const { kind } of RECONCILERS) {
        for (const ready of STATUSES) this.set({ kind, ready }, 0);
        for (const { status } of source.list(kind)) this.inc({ kind, ready: readyOf(status) });
      }
    },
  });
  const policies = () => source.list("ApiKeyPolicy").map(({ status }) => seenStatusOf(status));
  new Gauge({
    ...exported(OBJECT_METRICS.policies),
    registers,
    collect() {
      this.reset();
      for (const condition of POLICY_CONDITIONS) {
        for (const status of STATUSES) this.set({ condition, status }, 0);
      }
      for (const { conditions } of policies()) {
        for (const { type, status } of conditions) {
          const condition = POLICY_CONDITIONS.find((one) => one === type);
          if (condition !== undefined) this.inc({ condition, status });
        }
      }
    },
  });
  new Gauge({
    ...exported(OBJECT_METRICS.unguarded),
    registers,
    collect() {
      this.set(policies().reduce((sum, { dataPlane }) => sum + dataPlane.unguarded, 0));
    },
  });
  new Gauge({
    ...exported(OBJECT_METRICS.silent),
    registers,
    collect() {
      this.set(policies().reduce((sum, { dataPlane }) => sum + dataPlane.silent, 0));
    },
  });
  return {
    observe: ({ name, result, durationMs }) => {
      reconciles.inc({ kind: name, result });
      if (result === "error") retries.inc({ kind: name });
      duration.observe({ kind: name }, durationMs / 1000);
    },
    observeWait: ({ name, waitedMs }) => waits.observe({ kind: name }, waitedMs / 1000),
    observePoll: ({ result, durationMs }) => polls.observe({ result }, durationMs / 1000),
    setLeading: (isLeading) => leading.set(isLeading ? 1 : 0),
  };
}

const StatusInMetrics = z.object({
  conditions: z.array(z.object({ type: z.string(), status: z.enum(STATUSES) })).default([]),
  dataPlane: z
    .object({ unguarded: z.number().default(0), silent: z.number().default(0) })
    .default({ unguarded: 0, silent: 0 }),
});

/** Parses a status. A status that another writer has made invalid counts as absent, so the operator writes it again. */
function seenStatusOf(status: unknown): z.output<typeof StatusInMetrics> {
  const parsed = StatusInMetrics.safeParse(status ?? {});
  return parsed.success ? parsed.data : StatusInMetrics.parse({});
}

const readyOf = (status: unknown): string =>
  seenStatusOf(status).conditions.find(({ type }) => type === "Ready")?.status ?? "Unknown";
