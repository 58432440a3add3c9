import type { Server, Socket } from "node:net";
import { ConcurrencyLimiter } from "../../edge/concurrency-limiter.ts";
import type { Certificate } from "../../edge/follow-certificate.ts";
import type { Trust } from "./trusted.ts";

/*
 * Limits the connections of an ext-auth endpoint: many from trusted addresses, and few from others, which are only rejected. A connection
 * beyond the limit is closed before any data of it is read, including TLS, so that untrusted clients take neither memory nor the capacity
 * of the gateways.
 */

export interface ExtAuthConnectionLimits {
  /** Maximum connections from trusted addresses. */
  readonly extAuthConnectionsMax: number;
  /** Maximum connections from all other addresses together; half of them from one address. */
  readonly untrustedConnectionsMax: number;
}

/** Idle time before TCP keepalive probes, which detect a peer that vanished. */
const KEEP_ALIVE_MS = 60_000;
/** Maximum share of one address where trust is not known before the TLS handshake. */
const SHARE = 0.5;

/** An ext-auth endpoint that does not listen yet. */
export interface ExtAuthServer {
  readonly server: Server;
  /**
   * Sets the certificate for new connections; `undefined` for an endpoint without TLS. Throws when the certificate is not usable, and then
   * keeps the previous one.
   */
  readonly setSecureContext: ((certificate: Certificate) => void) | undefined;
  /** Stops accepting connections, and completes requests in flight for at most `graceMs`. */
  readonly end: (graceMs: number) => Promise<void>;
}

export interface ExtAuthConnections {
  /** Includes connections whose TLS handshake is not complete. */
  closeAll(): void;
}

/** Call it before the server listens. `onLimitReached` is called with the address of each rejected connection. */
export function boundConnections(
  server: Server,
  { extAuthConnectionsMax, untrustedConnectionsMax }: ExtAuthConnectionLimits,
  { trust, onLimitReached }: { trust: Trust; onLimitReached: (address: string | undefined) => void },
): ExtAuthConnections {
  const { isTrusted } = trust;
  const gateways = new ConcurrencyLimiter({
    max: extAuthConnectionsMax,
    share: trust.by === "certificate" ? SHARE : 1,
    waitMs: 0,
  });
  const strangers = new ConcurrencyLimiter({ max: untrustedConnectionsMax, share: SHARE, waitMs: 0 });
  const open = new Set<Socket>();
  // The limit applies before the server's own handlers.
  const serve = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    const address = socket.remoteAddress;
    const limiter = isTrusted(address) ? gateways : strangers;
    const key = address ?? "";
    if (!limiter.tryAcquire(key)) {
      onLimitReached(address);
      socket.destroy();
      return;
    }
    open.add(socket);
    socket.once("close", () => {
      open.delete(socket);
      limiter.release(key);
    });
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    for (const listener of serve) listener.call(server, socket);
  });
  return {
    closeAll: () => {
      for (const socket of open) socket.destroy();
    },
  };
}
