import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";
import type { Closeable } from "../../edge/closeable.ts";

export interface Admin extends Closeable {
  readonly url: string;
}

/** Serves `/livez`, `/readyz` and `/metrics` of a process that serves no API. Throws if the port is in use. */
export async function startAdmin(options: {
  host: string;
  port: number;
  metrics: () => Registry;
  /** Returns the reason why the process is not ready, as text for people; `undefined` if it is ready. */
  notReady: () => string | undefined;
}): Promise<Admin> {
  const { host, port, notReady } = options;
  const server = createServer(async (request, response) => {
    const respond = (status: number, text: string, type = "text/plain; charset=utf-8") =>
      response.writeHead(status, { "content-type": type }).end(text);
    if (request.url === "/livez") respond(200, "ok\n");
    else if (request.url === "/readyz") {
      const why = notReady();
      if (why === undefined) respond(200, "ready\n");
      else respond(503, `not ready: ${why}\n`);
    } else if (request.url === "/metrics") {
      const metrics = options.metrics();
      respond(200, await metrics.metrics(), metrics.contentType);
    } else respond(404, "");
  });
  server.listen(port, host);
  await once(server, "listening");
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
