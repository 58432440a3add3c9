import { startClickhousePart } from "./clickhouse.ts";
import { startKubernetesPart } from "./kubernetes.ts";
import { startPostgresPart } from "./postgres.ts";
import { startRedisPart } from "./redis.ts";

/** The address of a part: JSON, because the run's main process sends it to the workers. */
export type Address = Record<string, string>;

const starters = {
  postgres: startPostgresPart,
  redis: startRedisPart,
  kubernetes: startKubernetesPart,
  clickhouse: startClickhousePart,
};
export type Part = keyof typeof starters;

/** Finds or starts a part. Throws an error of one line when the part is not available. */
export async function startPart(part: Part): Promise<{ address: Address; stop(): Promise<void> }> {
  const start = starters[part];
  if (start === undefined) throw new Error(`the harness knows no part "${part}"`);
  return await start();
}
