import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export interface Replica {
  readonly port: number;
  readonly adminPort: number;
}

/** One port for changing replicas, like a Kubernetes Service: new connections go to ready replicas and stay there. */
export interface Balancer {
  readonly port: number;
  add(replica: Replica): void;
  remove(replica: Replica): void;
  isReady(replica: Replica): boolean;
  close(): Promise<void>;
}

const PROBE_EVERY_MS = 100;
const PROBE_MS_MAX = 1_000;

export async function startBalancer(): Promise<Balancer> {
  const replicas = new Map<Replica, { ready: boolean }>();
  let isClosed = false;
  let next = 0;
  const probe = async (replica: Replica, state: { ready: boolean }): Promise<void> => {
    const url = `http://127.0.0.1:${replica.adminPort}/readyz`;
    const response = await fetch(url, { signal: AbortSignal.timeout(PROBE_MS_MAX) }).catch(() => undefined);
    await response?.text().catch(() => undefined);
    state.ready = response?.status === 200;
  };
  const probing = (async () => {
    while (!isClosed) {
      await Promise.all([...replicas].map(([replica, state]) => probe(replica, state)));
      await sleep(PROBE_EVERY_MS);
    }
  })();
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const ready = [...replicas].filter(([, state]) => state.ready);
    const target = ready[next++ % ready.length]?.[0];
    near.on("error", () => undefined);
    if (target === undefined) return void near.destroy();
    const far = connect({ host: "127.0.0.1", port: target.port, allowHalfOpen: true });
    far.on("error", () => near.destroy());
    // The end of either side is forwarded after its data.
    near.pipe(far);
    far.pipe(near);
    near.on("close", () => far.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    add: (replica) => void replicas.set(replica, { ready: false }),
    remove: (replica) => void replicas.delete(replica),
    isReady: (replica) => replicas.get(replica)?.ready === true,
    close: async () => {
      isClosed = true;
      server.close();
      await probing;
    },
  };
}
