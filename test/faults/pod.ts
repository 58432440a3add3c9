import type { Consumed } from "../../core/charges.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import { openProjection } from "../../edge/projection/projection.ts";
import type { System } from "./system.ts";

/** The dependencies of a gate's decisions without the gate: the records of its workspace and the shared counters. */
export interface Pod {
  readonly projection: Projection;
  /** Spends credits of a key once, as a gate does. */
  spend(keyId: string, cost?: number): Promise<Consumed>;
}

const COUNTERS_TIMEOUT_MS = 1000;

export async function startPod(system: System): Promise<Pod> {
  const workspaceId = await system.workspaceId();
  const edge = await system.edge("test-pod");
  const { source, stream } = edge;
  const projection = system.closing(await openProjection({ source, stream, follow: { workspaceId } }));
  const counters = edge.counters({ timeoutMs: COUNTERS_TIMEOUT_MS });
  return {
    projection,
    spend: (keyId, cost = 1) => counters.consume({ limits: [], credits: { workspaceId, keyId, cost } }),
  };
}
