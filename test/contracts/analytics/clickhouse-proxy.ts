import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/** What happens to forwarded inserts. */
export interface InsertFate {
  /** Resolves when the insert may continue to ClickHouse. */
  readonly before?: () => Promise<void>;
  /** Whether the insert runs but its response is lost. */
  readonly loseAnswer?: boolean;
}

export interface ClickhouseProxy {
  readonly url: string;
  /** Decides about later inserts; all pass until the first call. */
  decide(fate: (nth: number) => InsertFate): void;
  close(): Promise<void>;
}

/** Starts an HTTP proxy between an analytics store and ClickHouse. */
export async function startClickhouseProxy(target: string): Promise<ClickhouseProxy> {
  let fateOf: (nth: number) => InsertFate = () => ({});
  let inserts = 0;
  const server = createServer(async (incoming, outgoing) => {
    try {
      const body = await buffer(incoming);
      const isInsert = /[?&]query=INSERT/i.test(incoming.url ?? "");
      const fate = isInsert ? fateOf(inserts++) : {};
      await fate.before?.();
      const { hostname, port } = new URL(target);
      const sent = request({ hostname, port, path: incoming.url, method: incoming.method, headers: incoming.headers });
      sent.end(body);
      const [response] = (await once(sent, "response")) as [import("node:http").IncomingMessage];
      const content = await buffer(response);
      if (fate.loseAnswer) outgoing.destroy();
      else outgoing.writeHead(response.statusCode ?? 500, response.headers).end(content);
    } catch {
      outgoing.destroy();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    decide: (fate) => {
      inserts = 0;
      fateOf = fate;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
