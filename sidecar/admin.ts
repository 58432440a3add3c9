import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type Server, type ServerResponse } from "node:http";
import { guardedMessages, guardServer, type OnInternalError } from "../http/http1/guard.ts";
import type { Probes } from "./probes.ts";
import type { Readiness } from "./readiness.ts";

/** Creates a server that serves only probes and metrics, on a different port than the traffic to the app. */
export function createAdminServer(options: {
  readiness: () => Readiness;
  metrics: () => Promise<{ type: string; text: string }>;
  /** The preStop hook, which kubelet calls when it begins to terminate the pod. The caller must send the token. */
  podEnds?: { token: string; begin: () => void } | undefined;
  probes: Probes;
  onInternalError: OnInternalError;
}): Server {
  const server = createServer(guardedMessages(options.onInternalError), (req, res) => {
    const path = req.url?.split("?")[0];
    if (req.method !== "GET" && req.method !== "HEAD") {
      send(res, 405, "text/plain", "only GET\n");
    } else if (path === "/livez") {
      send(res, 200, "text/plain", "ok\n");
    } else if (path === "/readyz") {
      const { ready, detail } = options.readiness();
      send(res, ready ? 200 : 503, "application/json", `${JSON.stringify({ ready, ...detail })}\n`);
    } else if (path === "/metrics") {
      options.metrics().then(
        ({ type, text }) => send(res, 200, type, text),
        (error: unknown) => send(res, 500, "text/plain", `${error}\n`),
      );
    } else if (path?.startsWith("/probes/")) {
      const result = options.probes.run(path);
      if (result === undefined) send(res, 404, "text/plain", "no such probe\n");
      else void result.then(({ ok, detail }) => send(res, ok ? 200 : 503, "text/plain", `${detail}\n`));
    } else if (path === "/drain" && options.podEnds !== undefined) {
      const { token, begin } = options.podEnds;
      const given = req.headers["postern-hook-token"];
      if (typeof given !== "string" || !isEqual(given, token)) send(res, 403, "text/plain", "wrong token\n");
      else {
        begin();
        send(res, 200, "text/plain", "draining\n");
      }
    } else {
      send(res, 404, "text/plain", "not found\n");
    }
  });
  guardServer(server, options.onInternalError);
  return server;
}

/** Compares digests, so that the duration of the comparison reveals nothing about the token. */
const isEqual = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

function send(res: ServerResponse, status: number, type: string, body: string): void {
  res.writeHead(status, { "Content-Type": type, "Content-Length": Buffer.byteLength(body) });
  res.end(body);
}
