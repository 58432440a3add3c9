import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { PublicError } from "../core/errors.ts";
import { makeId } from "../core/ids.ts";
import type { Closeable } from "../edge/closeable.ts";
import type { Certificate } from "../edge/follow-certificate.ts";
import { atMost } from "./at-most.ts";
import { errorBody } from "./plugins/errors.ts";
import { WAITING, type WaitingReason, waitingAnswer } from "./until-postgres.ts";

const ANSWER_MS_MAX = 200;
const HANDSHAKE_MS_MAX = 10_000;

/**
 * Answers at the address of an api-server that cannot serve yet: it is alive, it is not ready and why, and everything else fails. So a
 * long migration, or a Postgres that is away, does not look like a process that hangs. Throws when the port is taken.
 */
export async function openLobby(options: {
  host: string;
  port: number;
  docsUrl: string | undefined;
  tls: (() => Certificate) | undefined;
  reason: () => WaitingReason;
}): Promise<Closeable> {
  const { host, port, docsUrl = "", tls, reason } = options;
  const serve: RequestListener = (request, response) => {
    const answer = (status: number, body: object) => {
      // The next request should meet the api-server itself.
      response.writeHead(status, { "Content-Type": "application/json", Connection: "close" });
      response.end(JSON.stringify(body));
    };
    const path = request.url?.split("?")[0];
    if (path === "/livez") answer(200, { status: "ok" });
    else if (path === "/readyz") {
      const { status, body } = waitingAnswer(reason());
      answer(status, body);
    } else {
      const error = new PublicError("service_unavailable", `The server is not ready: ${WAITING[reason()]}.`);
      answer(500, errorBody(error, { requestId: makeId("request", randomBytes(24)), docsUrl }));
    }
  };
  const server =
    tls === undefined ? createServer(serve) : createTlsServer({ ...tls(), handshakeTimeout: HANDSHAKE_MS_MAX }, serve);
  server.listen(port, host);
  await once(server, "listening");
  return {
    close: async () => {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      // Answers that are on their way have a moment.
      await atMost(ANSWER_MS_MAX, closed);
      server.closeAllConnections();
      await closed;
    },
  };
}
