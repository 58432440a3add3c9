import { BROKER_URL, startBroker } from "./broker.ts";

/**
 * Runs once before all tests in the main process, which becomes the parent of every shared service. Returns the teardown function. Two
 * projects in one run share one broker.
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
