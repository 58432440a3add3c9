import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import * as z from "zod";
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

/** No label names an object, because the number of objects is not bounded. */
export function createOperatorMetrics(options: MetricsOptions): OperatorMetrics {
  const { registry, controllers, watchStates, source, syncs, nowMs } = options;
  const registers = [registry];
  const reconciles = new Counter({
    name: "postern_operator_reconciles_total",
    help: "Reconciles, by kind and result.",
    labelNames: ["kind", "result"],
    registers,
  });
  const duration = new Histogram({
    name: "postern_operator_reconcile_seconds",
    help: "How long a reconcile took.",
    labelNames: ["kind"],
    buckets: [0.005, 0.02, 0.05, 0.1, 0.3, 1, 3, 10],
    registers,
  });
  const retries = new Counter({
    name: "postern_operator_retries_total",
    help: "Reconciles that failed and are tried again, by kind.",
    labelNames: ["kind"],
    registers,
  });
  const waits = new Histogram({
    name: "postern_operator_queue_wait_seconds",
    help: "How long an object was in the queue until its turn came, by kind.",
    labelNames: ["kind"],
    buckets: [0.005, 0.05, 0.3, 1, 3, 10, 30, 100],
    registers,
  });
  new Gauge({
    name: "postern_operator_queue_depth",
    help: "Objects that are in the queue or being reconciled, by kind.",
    labelNames: ["kind"],
    registers,
    collect() {
      for (const [kind, { depth }] of controllers) this.set({ kind }, depth);
    },
  });
  new Gauge({
    name: "postern_operator_watch_age_seconds",
    help: "How long ago it was certain that no change was missed, by resource; the oldest of several namespaces. Inf before the first list.",
    labelNames: ["resource"],
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
    name: "postern_operator_leading",
    help: "1 while this replica is the leader.",
    registers,
  });
  const polls = new Histogram({
    name: "postern_operator_policy_poll_seconds",
    help: "How long it took to list the statuses of a workspace's policies, by result.",
    labelNames: ["result"],
    buckets: [0.02, 0.1, 0.3, 1, 3, 10, 30],
    registers,
  });
  new Gauge({
    name: "postern_operator_oldest_sync_seconds",
    help: "How long ago the object whose turn is longest ago was compared with the store and found or made equal, by kind.",
    labelNames: ["kind"],
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
    name: "postern_operator_objects",
    help: "Objects, by kind and status of their Ready condition.",
    labelNames: ["kind", "ready"],
    registers,
    collect() {
      this.reset();
      for (const { kind } of RECONCILERS) {
        for (const ready of ["True", "False", "Unknown"]) this.set({ kind, ready }, 0);
        for (const { status } of source.list(kind)) this.inc({ kind, ready: readyOf(status) });
      }
    },
  });
  const policies = () => source.list("ApiKeyPolicy").map(({ status }) => seenStatusOf(status));
  new Gauge({
    name: "postern_operator_policies",
    help: "Policies, by condition and its status.",
    labelNames: ["condition", "status"],
    registers,
    collect() {
      this.reset();
      for (const condition of POLICY_CONDITIONS) {
        for (const status of ["True", "False", "Unknown"]) this.set({ condition, status }, 0);
      }
      for (const { conditions } of policies()) {
        for (const { type, status } of conditions) {
          if (POLICY_CONDITIONS.includes(type)) this.inc({ condition: type, status });
        }
      }
    },
  });
  new Gauge({
    name: "postern_operator_unguarded_pods",
    help: "Running pods that a policy selects and that have no gate of it, as the statuses of policies say.",
    registers,
    collect() {
      this.set(policies().reduce((sum, { dataPlane }) => sum + dataPlane.unguarded, 0));
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

/** Those that an alert may be about. */
const POLICY_CONDITIONS: readonly string[] = ["Enforced", "Stale", "Refused", "Bypassable"];

const StatusInMetrics = z.object({
  conditions: z.array(z.object({ type: z.string(), status: z.enum(["True", "False", "Unknown"]) })).default([]),
  dataPlane: z.object({ unguarded: z.number().default(0) }).default({ unguarded: 0 }),
});

/** A status that another writer broke counts as none: it is written again. */
function seenStatusOf(status: unknown): z.output<typeof StatusInMetrics> {
  const parsed = StatusInMetrics.safeParse(status ?? {});
  return parsed.success ? parsed.data : StatusInMetrics.parse({});
}

const readyOf = (status: unknown): string =>
  seenStatusOf(status).conditions.find(({ type }) => type === "Ready")?.status ?? "Unknown";
