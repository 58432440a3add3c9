import { BROKER_URL, startBroker } from "./broker.ts";

/**
 * Runs once before all tests, in the main process, which thereby is the parent of every shared part. Returns what is
 * to be done after the last test. Two projects in one run share one broker.
 */
export default async function setup(): Promise<() => Promise<void>> {
  if (process.env[BROKER_URL] !== undefined) return async () => {};
  const broker = await startBroker();
  process.env[BROKER_URL] = broker.url;
  return async () => {
    delete process.env[BROKER_URL];
    await broker.close();
  };
}
