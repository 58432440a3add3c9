import type { Server, Socket } from "node:net";
import { networkOf } from "../../core/verification/ip-address.ts";
import { sharedBy } from "../../edge/concurrency-limiter.ts";
import { ConnectionLimiter, type LimitedConnection } from "../../http/http1/connection-limiter.ts";

/*
 * Limits the number of open connections, because the server may buffer 256 KiB of a body on each before it authenticates the sender. At the
 * limit, a new connection evicts the one that has waited longest for its client. A client can be slow to complete a handshake, to send a
 * request or the rest of one, or to read a response. If the server is processing requests on all connections, the new connection is closed.
 */

/**
 * Maximum number of connections. If each one buffers 256 KiB of a body, a server takes 409 MB, or 438 MB with TLS, of the 537 MB (512 MiB)
 * that the chart gives to the pod.
 */
export const CONNECTIONS_MAX = 1_000;

/**
 * Maximum share of the connections that one address can have while no other address has any. All clients behind one SNAT address share it.
 */
const ADDRESS_SHARE = 0.5;

export type LimitAction = "evicted" | "rejected";

export interface ConnectionLimit {
  open(): number;
}

interface LimitOptions {
  readonly max: number;
  /**
   * Returns whether many clients share this address, for example because it belongs to a proxy. Its connections are then exempt from the
   * share per address.
   */
  readonly isProxy: (address: string) => boolean;
  /**
   * Returns the time at which the server began to wait for the client, as `performance.now()`; `undefined` while it processes a request.
   */
  readonly awaitedSince: (socket: Socket, openedMs: number) => number | undefined;
  readonly onLimit: (action: LimitAction) => void;
}

/** Installs the limit. Must be called after all other connection listeners of the server are registered. */
export function limitConnections(
  server: Server,
  { max, isProxy, awaitedSince, onLimit }: LimitOptions,
): ConnectionLimit {
  const limiter = new ConnectionLimiter({
    max,
    mayAcquire: sharedBy(ADDRESS_SHARE),
    onLimitReached: onLimit,
  });
  /**
   * Sockets after the TLS handshake, by address and port. These identify the connection, because the socket before the handshake is a
   * different object.
   */
  const secured = new Map<string, Socket>();
  const serve = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    const address = socket.remoteAddress ?? "";
    const sharer = isProxy(address) ? undefined : networkOf(address);
    if (!limiter.admit(sharer)) {
      socket.destroy();
      return;
    }
    const peer = peerOf(socket);
    const openedMs = performance.now();
    const connection: LimitedConnection = {
      get idleSinceMs() {
        return awaitedSince(secured.get(peer) ?? socket, openedMs);
      },
      evict: () => socket.destroy(),
    };
    limiter.enter(connection, sharer);
    socket.once("close", () => {
      limiter.leave(connection);
      secured.delete(peer);
    });
    for (const listener of serve) listener.call(server, socket);
  });
  server.prependListener("secureConnection", (socket: Socket) => secured.set(peerOf(socket), socket));
  return { open: () => limiter.size };
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
