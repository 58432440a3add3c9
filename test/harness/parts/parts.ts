import { startKubernetesPart } from "./kubernetes.ts";
import { startPostgresPart } from "./postgres.ts";
import { startRedisPart } from "./redis.ts";

/** How a part is reached: JSON, because it travels from the run's main process to the workers. */
export type Address = Record<string, string>;

const starters = {
  postgres: startPostgresPart,
  redis: startRedisPart,
  kubernetes: startKubernetesPart,
};
export type Part = keyof typeof starters;

/** Finds or makes a part. Throws an error of one line when there is no way to have it. */
export async function startPart(part: Part): Promise<{ address: Address; stop(): Promise<void> }> {
  const start = starters[part];
  if (start === undefined) throw new Error(`the harness knows no part "${part}"`);
  return await start();
}
