import type { Pool } from "pg";
import { longestRetention } from "../retention.ts";
import { planPartitions } from "./partition-plan.ts";
import { createPartition, dropPartition, listPartitions } from "./partitions.ts";

/**
 * Creates the partitions for current and upcoming events and drops partitions past every workspace's retention. After a failure, continues
 * with the remaining partitions, and throws the first error at the end.
 */
export async function keepPartitions(db: Pool, nowMs: number): Promise<void> {
  const found = await listPartitions(db);
  const names = found.map(({ name }) => name);
  const { create, drop } = planPartitions(names, { nowMs, retention: await longestRetention(db) });
  let failure: unknown;
  for (const { partition, act } of [
    ...create.map((partition) => ({ partition, act: createPartition })),
    ...drop.map((partition) => ({ partition, act: dropPartition })),
  ]) {
    try {
      await act(db, partition);
    } catch (error) {
      failure ??= new Error(`partition ${partition.name}`, { cause: error });
    }
  }
  if (failure !== undefined) throw failure;
}
