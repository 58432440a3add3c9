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
  /** For each list of the statuses of a workspace's policies. */
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

/** Those that an alert may be about. */
const POLICY_CONDITIONS = ["Enforced", "Stale", "Unsupported", "LimitsExceeded", "Bypassable"] as const;
const STATUSES = ["True", "False", "Unknown"] as const;
const KINDS = RECONCILERS.map(({ kind }) => kind);

export const OBJECT_METRICS = defineMetrics({
  reconciles: {
    name: "postern_operator_reconciles_total",
    type: "counter",
    help: "Reconciles, by kind and result.",
    unit: "reconciles",
    labels: { kind: KINDS, result: ["success", "error"] },
    bad: "Mostly errors: see `postern_operator_retries_total`.",
  },
  duration: {
    name: "postern_operator_reconcile_duration_seconds",
    type: "histogram",
    help: "How long a reconcile took.",
    unit: "seconds",
    labels: { kind: KINDS },
    bad: "The 99th percentile above 3: the API or Kubernetes is slow, see `postern_operator_api_call_duration_seconds` and `postern_operator_kubernetes_request_duration_seconds`.",
  },
  retries: {
    name: "postern_operator_retries_total",
    type: "counter",
    help: "Reconciles that failed and are tried again, by kind.",
    unit: "reconciles",
    labels: { kind: KINDS },
    bad: "More than three a minute (PosternReconcileErrors): the log line `reconcile failed; retrying` has the object and the reason.",
  },
  waits: {
    name: "postern_operator_queue_wait_duration_seconds",
    type: "histogram",
    help: "How long an object was in the queue until its turn came, by kind.",
    unit: "seconds",
    labels: { kind: KINDS },
    bad: "The 99th percentile above 30 (PosternQueueLatencyHigh): edits take effect that late.",
  },
  depth: {
    name: "postern_operator_queue_depth",
    type: "gauge",
    help: "Objects that are in the queue or being reconciled, by kind.",
    unit: "objects",
    labels: { kind: KINDS },
    bad: "High after a start or a large apply, then falling. Above 100 for 15 minutes (PosternQueueBacklog): calls are slow or fail.",
  },
  watchAge: {
    name: "postern_operator_watch_age_seconds",
    type: "gauge",
    help: "How long ago it was certain that no change was missed, by resource; the oldest of several namespaces. Inf before the first list.",
    unit: "seconds",
    labels: { resource: "the plural of a watched kind, such as `apikeypolicies` or `pods`" },
    bad: "Above 120 (PosternWatchStale): changes of this resource are missed. `/readyz` of the admin port says why; mostly a right is missing or the Kubernetes API is away.",
  },
  leading: {
    name: "postern_operator_leading",
    type: "gauge",
    help: "1 while this replica is the leader.",
    unit: "1 or 0",
    bad: "The sum over all replicas is 1. 0 for longer than half a minute (PosternOperatorDown): manifests have no effect. `kubectl -n postern get lease` names the holder.",
  },
  polls: {
    name: "postern_operator_policy_poll_duration_seconds",
    type: "histogram",
    help: "How long it took to list the statuses of a workspace's policies, by result.",
    unit: "seconds",
    labels: { result: ["success", "error"] },
    bad: "Errors, or more than 3: the api-server is away or slow, and statuses of policies are old.",
  },
  oldestSync: {
    name: "postern_operator_oldest_sync_seconds",
    type: "gauge",
    help: "How long ago the object whose turn is longest ago was compared with the store and found or made equal, by kind.",
    unit: "seconds",
    labels: { kind: KINDS },
    bad: "Above 900: an object fails again and again, or the queue is deep. `kubectl get postern -A` shows those that are not Ready.",
  },
  objects: {
    name: "postern_operator_objects",
    type: "gauge",
    help: "Objects, by kind and status of their Ready condition.",
    unit: "objects",
    labels: { kind: KINDS, ready: STATUSES },
    bad: '`ready="False"` above 0 for 15 minutes (PosternObjectsNotReady): `kubectl get postern -A`, then `kubectl describe` says what is wrong with the object.',
  },
  policies: {
    name: "postern_operator_policies",
    type: "gauge",
    help: "Policies, by condition and its status.",
    unit: "policies",
    labels: { condition: POLICY_CONDITIONS, status: STATUSES },
    bad: "`Stale` or `Unsupported` True (PosternPolicyStale, PosternPolicyUnsupported); `Enforced` False: pods without a gate, or gates that have not reported; `LimitsExceeded` True (PosternLimitsExceeded): limits were exceeded while Redis was away; `Bypassable` True: the app's port is open to others than its gate.",
  },
  unguarded: {
    name: "postern_operator_unguarded_pods",
    type: "gauge",
    help: "Running pods that a policy selects and that have no gate of it, as the statuses of policies say.",
    unit: "pods",
    bad: "Above 0 for ten minutes (PosternUnguardedPods): requests to these pods are not checked. Events of the policies name them; restart them, so that they get a gate.",
  },
  silent: {
    name: "postern_operator_silent_pods",
    type: "gauge",
    help: "Running pods whose gate does not report, as the statuses of policies say.",
    unit: "pods",
    bad: "Above 0 for ten minutes (PosternSilentPods): whether these pods enforce their policy is not known. The condition `Enforced` names them, with the time of their last report.",
  },
});

/** No label names an object, because the number of objects is not bounded. */
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

/** A status that another writer broke counts as none: it is written again. */
function seenStatusOf(status: unknown): z.output<typeof StatusInMetrics> {
  const parsed = StatusInMetrics.safeParse(status ?? {});
  return parsed.success ? parsed.data : StatusInMetrics.parse({});
}

const readyOf = (status: unknown): string =>
  seenStatusOf(status).conditions.find(({ type }) => type === "Ready")?.status ?? "Unknown";
