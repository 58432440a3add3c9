import type { Server, Socket } from "node:net";
import { Places } from "../../edge/places.ts";
import type { IsTrusted } from "./trusted.ts";

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
const STRANGERS_SHARE = 0.5;

/** Call it before the server listens. `onCrowded` gets the address of a connection that is closed. */
export function boundConnections(
  server: Server,
  { doorConnectionsMax, doorStrangersMax }: DoorConnectionLimits,
  { isTrusted, onCrowded }: { isTrusted: IsTrusted; onCrowded: (address: string | undefined) => void },
): void {
  const gateways = new Places({ max: doorConnectionsMax, share: 1, waitMs: 0 });
  const strangers = new Places({ max: doorStrangersMax, share: STRANGERS_SHARE, waitMs: 0 });
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
    socket.once("close", () => places.release(key));
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    for (const listener of serve) listener.call(server, socket);
  });
}
