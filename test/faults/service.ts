import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** One address for several replicas, like a Kubernetes Service. */
export interface Service {
  readonly port: number;
  /** Returns the URLs of the replicas that currently get connections. */
  endpoints(): readonly string[];
  close(): Promise<void>;
}

const PROBE_EVERY_MS = 100;
/** Kubelet defaults: probe timeout in ms and failure threshold. */
const PROBE_MS_MAX = 1_000;
const FAILURES_MAX = 3;

/** Forwards each connection to the next replica whose `/readyz` responds 200 in time, and closes it if none does. */
export async function startService(urls: readonly string[]): Promise<Service> {
  let isClosed = false;
  let next = 0;
  const ready = new Set<string>();
  const probe = async (url: string): Promise<void> => {
    let failures = 0;
    while (!isClosed) {
      const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(PROBE_MS_MAX) }).catch(
        () => undefined,
      );
      failures = response?.status === 200 ? 0 : failures + 1;
      if (failures === 0) ready.add(url);
      if (failures >= FAILURES_MAX) ready.delete(url);
      await response?.text().catch(() => undefined);
      await sleep(PROBE_EVERY_MS);
    }
  };
  const probing = Promise.all(urls.map(probe));
  const endpoints = () => urls.filter((url) => ready.has(url));
  const server = createServer((near) => {
    const targets = endpoints();
    const target = targets[next++ % targets.length];
    near.on("error", () => undefined);
    if (target === undefined) return void near.destroy();
    const far = connect({ host: "127.0.0.1", port: Number(new URL(target).port) });
    far.on("error", () => near.destroy());
    near.pipe(far).pipe(near);
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    endpoints,
    close: async () => {
      isClosed = true;
      server.close();
      await probing;
    },
  };
}
