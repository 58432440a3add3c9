import type { Server } from "node:http";
import type { Socket } from "node:net";
import { performance } from "node:perf_hooks";
import { Server as TlsServer } from "node:tls";
import { DirectConnection, type DirectParts } from "./direct-connection.ts";
import type { DirectRoute } from "./direct-request.ts";

/*
 * Serves plain calls of the hot procedures without Node's `http` and without fastify, which took half of the CPU of a verification
 * (decision 0028). Each new connection begins here; at its first request of another kind it becomes one of Node's server, and stays that.
 */

export interface DirectFront {
  /** Serves a procedure directly. */
  add(route: DirectRoute): void;
  /** When the last request came, by `performance.now()`. */
  lastRequestMs(): number;
  /** From now on every request is left to Node, which says that it is the last one of its connection. */
  stop(): void;
}

/** A body that comes this slowly is left to Node, which knows how long it may take. */
const GATHERED_MS_BOUND = 250;
const LOOK_MS = 250;
/** For a client to take a response. */
const READ_MS = 120_000;
const HEAD_BYTES_BOUND = 16_384;

/**
 * Takes the connections of a server of HTTP, or of HTTP by TLS, before it listens. Its `closeIdleConnections` and `closeAllConnections` then
 * mean those here, too.
 */
export function createDirectFront(
  server: Server,
  {
    nextRequestId,
    addressBehindProxies,
    onFault,
  }: Pick<DirectParts, "nextRequestId" | "addressBehindProxies" | "onFault">,
  { readMs = READ_MS } = {},
): DirectFront {
  const routes = new Map<string, DirectRoute>();
  const connections = new Set<DirectConnection>();
  const opened = server instanceof TlsServer ? "secureConnection" : "connection";
  const ofNode = server.listeners(opened) as Array<(this: Server, socket: Socket) => void>;
  const { closeIdleConnections, closeAllConnections, keepAliveTimeout, headersTimeout } = server;
  let lastRequestMs = Number.NEGATIVE_INFINITY;
  let isStopping = false;

  const giveToNode = (socket: Socket): void => {
    for (const listener of ofNode) listener.call(server, socket);
  };

  const parts: DirectParts = {
    routes,
    addressBehindProxies,
    nextRequestId,
    headBytesMax: HEAD_BYTES_BOUND,
    keepAliveLines: `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveTimeout / 1000)}\r\n`,
    isStopping: () => isStopping,
    onRequest: (nowMs) => {
      lastRequestMs = nowMs;
    },
    leave: (connection) => {
      connections.delete(connection);
      giveToNode(connection.socket);
    },
    cutOff: (connection) => {
      connections.delete(connection);
      const error = Object.assign(new Error("The client has ended in the middle of a request."), { code: CUT_OFF });
      server.emit("clientError", error, connection.socket);
    },
    onFault,
  };

  function accept(socket: Socket): void {
    if (isStopping) {
      giveToNode(socket);
      return;
    }
    const connection = new DirectConnection(socket, parts);
    connections.add(connection);
    socket.once("close", () => {
      if (connections.delete(connection)) connection.closed();
    });
  }

  function look(): void {
    const nowMs = performance.now();
    for (const connection of connections) {
      const { socket, sinceMs, awaited } = connection;
      const waitedMs = nowMs - sinceMs;
      if (awaited === "rest") {
        if (waitedMs > GATHERED_MS_BOUND) connection.leave();
      } else if (awaited === "reader") {
        if (waitedMs > readMs) socket.destroy();
      } else if (awaited !== undefined) {
        if (waitedMs > (awaited === "first" ? headersTimeout : keepAliveTimeout)) socket.destroy();
      }
    }
  }

  const timer = setInterval(look, LOOK_MS);
  timer.unref();
  server.once("close", () => clearInterval(timer));
  server.removeAllListeners(opened);
  server.on(opened, accept);
  server.closeIdleConnections = () => {
    closeIdleConnections.call(server);
    for (const connection of connections) if (connection.isIdle) connection.socket.destroy();
  };
  server.closeAllConnections = () => {
    closeAllConnections.call(server);
    for (const { socket } of connections) socket.destroy();
  };
  return {
    add: (route) => routes.set(route.url, route),
    lastRequestMs: () => lastRequestMs,
    stop: () => {
      isStopping = true;
    },
  };
}

/** As Node's parser calls it. */
const CUT_OFF = "HPE_INVALID_EOF_STATE";
