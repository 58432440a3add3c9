import type { Server, Socket } from "node:net";
import { ConcurrencyLimiter } from "../../edge/concurrency-limiter.ts";
import type { Certificate } from "../../edge/follow-certificate.ts";
import type { Trust } from "./trusted.ts";

/*
 * Limits the connections of an ext-auth endpoint. Trusted addresses get many. Others get few, because their requests are only rejected. A
 * connection beyond the limit is closed before the server reads any data, including the TLS handshake, so that untrusted clients use
 * neither memory nor the capacity of the gateways.
 */

export interface ExtAuthConnectionLimits {
  /** Maximum number of connections from trusted addresses. */
  readonly extAuthConnectionsMax: number;
  /** Maximum number of connections from all other addresses together. One address may have half of them. */
  readonly untrustedConnectionsMax: number;
}

/** Idle time before TCP keepalive probes, which detect a lost peer. */
const KEEP_ALIVE_MS = 60_000;
/**
 * Maximum share of one address if certificates identify the gateways. Every address is then limited, because it is unknown before the TLS
 * handshake whether the address is trusted.
 */
const SHARE = 0.5;

/** An ext-auth endpoint that does not listen yet. */
export interface ExtAuthServer {
  readonly server: Server;
  /**
   * Sets the certificate for new connections; `undefined` for an endpoint without TLS. If the new certificate is
   * invalid, throws and keeps the previous certificate.
   */
  readonly setSecureContext: ((certificate: Certificate) => void) | undefined;
  /** Stops accepting connections, and completes requests in flight for at most `graceMs`. */
  readonly end: (graceMs: number) => Promise<void>;
}

export interface ExtAuthConnections {
  /** Closes all connections, including those whose TLS handshake is not complete. */
  closeAll(): void;
}

/**
 * Limits the connections of a server. Must be called before the server listens. `onLimitReached` is called with the address of each rejected
 * connection.
 */
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
  const untrusted = new ConcurrencyLimiter({ max: untrustedConnectionsMax, share: SHARE, waitMs: 0 });
  const open = new Set<Socket>();
  // Replaces the server's own connection handlers, so that the limiter runs before them.
  const serve = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    const address = socket.remoteAddress;
    const limiter = isTrusted(address) ? gateways : untrusted;
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
