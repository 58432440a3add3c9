import type { Server } from "node:http";
import type { Socket } from "node:net";
import { performance } from "node:perf_hooks";
import { Server as TlsServer } from "node:tls";
import { READ_MS_MAX } from "./connections.ts";
import { DirectConnection, type DirectDeps } from "./direct-connection.ts";
import type { DirectRoute } from "./direct-request.ts";

/*
 * Serves simple calls of hot procedures without Node's `http` and without fastify, because these took half of the CPU time of a
 * verification (decision 0028). Other well-formed requests on a connection are passed to Node's server one at a time, so that a client
 * whose verifications share a connection pool with other calls still gets fast verifications.
 */

export interface DirectFront {
  /** Registers a procedure; the direct front then handles its requests without Node's HTTP server. */
  add(route: DirectRoute): void;
  /** Returns the direct connection of a socket; `undefined` if the direct front does not serve the socket, or has handed it to Node. */
  connectionOf(socket: Socket): Pick<DirectConnection, "awaited" | "sinceMs" | "streamAtNode"> | undefined;
  /** Time of the last request, as `performance.now()`. */
  lastRequestMs(): number;
  /** Hands every further request to Node, which closes the connection after the response. */
  stop(): void;
}

/** Maximum time for a body to arrive, ms. A request with a slower body is passed to Node, which enforces the request timeout. */
const GATHERED_MS_BOUND = 250;
const POLL_MS = 250;
const HEAD_BYTES_BOUND = 16_384;

/**
 * Takes over the connections of an HTTP or HTTPS server. Must be called before the server listens. The server's `closeIdleConnections` and
 * `closeAllConnections` then also close direct connections.
 */
export function createDirectFront(
  server: Server,
  {
    nextRequestId,
    addressBehindProxies,
    onInternalError,
  }: Pick<DirectDeps, "nextRequestId" | "addressBehindProxies" | "onInternalError">,
  { readMs = READ_MS_MAX } = {},
): DirectFront {
  const routes = new Map<string, DirectRoute>();
  const connections = new Map<Socket, DirectConnection>();
  const opened = server instanceof TlsServer ? "secureConnection" : "connection";
  const ofNode = server.listeners(opened) as Array<(this: Server, socket: Socket) => void>;
  const { closeIdleConnections, closeAllConnections, keepAliveTimeout, headersTimeout } = server;
  let lastRequestMs = Number.NEGATIVE_INFINITY;
  let isStopping = false;

  const streams = new WeakMap<object, DirectConnection>();

  const giveToNode = (socket: Socket): void => {
    for (const listener of ofNode) listener.call(server, socket);
  };
  server.prependListener("request", ({ socket }, response) => {
    const connection = streams.get(socket);
    if (connection !== undefined) response.once("finish", () => connection.nodeResponded());
  });

  const deps: DirectDeps = {
    routes,
    addressBehindProxies,
    nextRequestId,
    headBytesMax: HEAD_BYTES_BOUND,
    keepAliveLines: `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveTimeout / 1000)}\r\n`,
    isStopping: () => isStopping,
    onRequest: (nowMs) => {
      lastRequestMs = nowMs;
    },
    serveByNode: (stream, connection) => {
      streams.set(stream, connection);
      // Node's documentation allows any duplex stream as a connection, so the cast is safe.
      giveToNode(stream as unknown as Socket);
    },
    leave: (connection) => {
      connections.delete(connection.socket);
      giveToNode(connection.socket);
    },
    cutOff: (connection) => {
      connections.delete(connection.socket);
      const error = Object.assign(new Error("The client has ended in the middle of a request."), { code: CUT_OFF });
      server.emit("clientError", error, connection.socket);
    },
    onInternalError,
  };

  function accept(socket: Socket): void {
    if (isStopping) {
      giveToNode(socket);
      return;
    }
    const connection = new DirectConnection(socket, deps);
    connections.set(socket, connection);
    socket.once("close", () => {
      if (connections.delete(socket)) connection.closed();
    });
  }

  function poll(): void {
    const nowMs = performance.now();
    for (const connection of connections.values()) {
      const { socket, sinceMs, awaited } = connection;
      const waitedMs = nowMs - sinceMs;
      if (awaited === "rest") {
        if (waitedMs > GATHERED_MS_BOUND) connection.passToNode();
      } else if (awaited === "reader") {
        if (waitedMs > readMs) socket.destroy();
      } else if (awaited !== undefined) {
        if (waitedMs > (awaited === "first" ? headersTimeout : keepAliveTimeout)) socket.destroy();
      }
    }
  }

  const timer = setInterval(poll, POLL_MS);
  timer.unref();
  server.once("close", () => clearInterval(timer));
  server.removeAllListeners(opened);
  server.on(opened, accept);
  server.closeIdleConnections = () => {
    closeIdleConnections.call(server);
    for (const connection of connections.values()) if (connection.isIdle) connection.socket.destroy();
  };
  server.closeAllConnections = () => {
    closeAllConnections.call(server);
    for (const socket of connections.keys()) socket.destroy();
  };
  return {
    add: (route) => routes.set(route.url, route),
    connectionOf: (socket) => connections.get(socket),
    lastRequestMs: () => lastRequestMs,
    stop: () => {
      isStopping = true;
    },
  };
}

/** Error code of Node's parser for an incomplete request on a closed connection. */
const CUT_OFF = "HPE_INVALID_EOF_STATE";
