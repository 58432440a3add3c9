import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { PublicError } from "../../core/errors.ts";
import { makeId } from "../../core/ids.ts";
import type { Closeable } from "../../edge/closeable.ts";
import type { Certificate } from "../../edge/follow-certificate.ts";
import { HEAD_MS_MAX } from "../plugins/connections.ts";
import { errorBody } from "../plugins/errors.ts";
import { atMost } from "./shutdown.ts";
import { WAITING, type WaitingReason, waitingAnswer } from "./until-postgres.ts";

const RESPONSE_MS_MAX = 200;

/**
 * Listens on an api-server's address until the api-server is ready: `/livez` succeeds, `/readyz` returns the reason for the delay, and
 * other requests fail. Without it, a process that waits for Postgres or a long migration would look hung. Throws if the port is in use.
 */
export async function openStartupServer(options: {
  host: string;
  port: number;
  docsUrl: string | undefined;
  tls: (() => Certificate) | undefined;
  reason: () => WaitingReason;
}): Promise<Closeable> {
  const { host, port, docsUrl = "", tls, reason } = options;
  const serve: RequestListener = (request, response) => {
    const respond = (status: number, body: object) => {
      // Closes the connection, so that the client's next request reaches the api-server itself.
      response.writeHead(status, { "Content-Type": "application/json", Connection: "close" });
      response.end(JSON.stringify(body));
    };
    const path = request.url?.split("?")[0];
    if (path === "/livez") respond(200, { status: "ok" });
    else if (path === "/readyz") {
      const { status, body } = waitingAnswer(reason());
      respond(status, body);
    } else {
      const error = new PublicError("service_unavailable", `The server is not ready: ${WAITING[reason()]}.`);
      respond(500, errorBody(error, { requestId: makeId("request", randomBytes(24)), docsUrl }));
    }
  };
  const server =
    tls === undefined ? createServer(serve) : createTlsServer({ ...tls(), handshakeTimeout: HEAD_MS_MAX }, serve);
  server.listen(port, host);
  await once(server, "listening");
  return {
    close: async () => {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      // Waits briefly for responses in progress.
      await atMost(RESPONSE_MS_MAX, closed);
      server.closeAllConnections();
      await closed;
    },
  };
}
