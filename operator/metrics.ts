import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { RECONCILERS } from "./reconcilers/registry.ts";
import type { SyncTimes } from "./reconcilers/sync-times.ts";
import type { ManifestSource } from "./source/contract.ts";

export interface OperatorMetrics {
  readonly registry: Registry;
  readonly observe: (outcome: { name: string; result: "success" | "error"; durationMs: number }) => void;
  /** For each list of the statuses of a workspace's policies. */
  readonly observePoll: (outcome: { readonly result: "success" | "error"; readonly durationMs: number }) => void;
  readonly setLeading: (isLeading: boolean) => void;
}

export interface MetricsOptions {
  readonly source: Pick<ManifestSource, "list">;
  readonly syncs: Pick<SyncTimes, "oldestMs">;
  readonly nowMs: () => number;
}

/** No label names an object, because the number of objects is not bounded. */
export function createOperatorMetrics({ source, syncs, nowMs }: MetricsOptions): OperatorMetrics {
  const registry = new Registry();
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
  return {
    registry,
    observe: ({ name, result, durationMs }) => {
      reconciles.inc({ kind: name, result });
      duration.observe({ kind: name }, durationMs / 1000);
    },
    observePoll: ({ result, durationMs }) => polls.observe({ result }, durationMs / 1000),
    setLeading: (isLeading) => leading.set(isLeading ? 1 : 0),
  };
}

function readyOf(status: unknown): string {
  const { conditions = [] } = (status ?? {}) as { conditions?: Array<{ type: string; status: string }> };
  return conditions.find(({ type }) => type === "Ready")?.status ?? "Unknown";
}
