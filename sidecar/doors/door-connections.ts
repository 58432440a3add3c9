import type { Server, Socket } from "node:net";
import type { Certificate } from "../../edge/follow-certificate.ts";
import { Places } from "../../edge/places.ts";
import type { Trust } from "./trusted.ts";

/*
 * How many connections a door keeps: many of those that may ask, and few of others, which only learn that they may not. One too many is
 * closed before anything of it is read, TLS included, so that strangers take neither memory nor the places of the gateways.
 */

export interface DoorConnectionLimits {
  /** From addresses that may ask. */
  readonly doorConnectionsMax: number;
  /** From all other addresses together; half of them from one address. */
  readonly doorStrangersMax: number;
}

/** TCP's own probes begin after this time, and find a peer that vanished without a word. */
const KEEP_ALIVE_MS = 60_000;
/** What one address may hold where it is not known beforehand who is a stranger. */
const SHARE = 0.5;

/** A door, before it listens. */
export interface Door {
  readonly server: Server;
  /** What is used for TLS from now on; undefined for a door that speaks none. Throws when it is not usable, and then keeps the last one. */
  readonly setSecureContext: ((certificate: Certificate) => void) | undefined;
  /** Stops accepting, and lets what was asked be answered for at most `graceMs`. */
  readonly end: (graceMs: number) => Promise<void>;
}

export interface DoorConnections {
  /** Also those whose TLS handshake is not over. */
  closeAll(): void;
}

/** Call it before the server listens. `onCrowded` gets the address of a connection that is closed. */
export function boundConnections(
  server: Server,
  { doorConnectionsMax, doorStrangersMax }: DoorConnectionLimits,
  { trust, onCrowded }: { trust: Trust; onCrowded: (address: string | undefined) => void },
): DoorConnections {
  const { isTrusted } = trust;
  const gateways = new Places({ max: doorConnectionsMax, share: trust.by === "certificate" ? SHARE : 1, waitMs: 0 });
  const strangers = new Places({ max: doorStrangersMax, share: SHARE, waitMs: 0 });
  const open = new Set<Socket>();
  // Whatever the server does with a connection comes after this.
  const serve = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    const address = socket.remoteAddress;
    const places = isTrusted(address) ? gateways : strangers;
    const key = address ?? "";
    if (!places.tryTake(key)) {
      onCrowded(address);
      socket.destroy();
      return;
    }
    open.add(socket);
    socket.once("close", () => {
      open.delete(socket);
      places.release(key);
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
