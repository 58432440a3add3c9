import { startClickhousePart } from "./clickhouse.ts";
import { startKubernetesPart } from "./kubernetes.ts";
import { startPostgresPart } from "./postgres.ts";
import { startRedisPart } from "./redis.ts";

/** Address of a service as JSON, because the main process sends it to the workers. */
export type Address = Record<string, string>;

const starters = {
  postgres: startPostgresPart,
  redis: startRedisPart,
  kubernetes: startKubernetesPart,
  clickhouse: startClickhousePart,
};
export type Part = keyof typeof starters;

/** Finds or starts a service. Throws an error of one line if it is unavailable. */
export async function startPart(part: Part): Promise<{ address: Address; stop(): Promise<void> }> {
  const start = starters[part];
  if (start === undefined) throw new Error(`the harness knows no part "${part}"`);
  return await start();
}
