import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { OngoingSet } from "./ongoing.ts";

/** Returns the URL of the listening server. Port 0 picks a free port. Throws when the port is not available. */
export async function listen(server: Server, { host, port }: { host: string; port: number }): Promise<string> {
  server.listen(port, host);
  // Rejects with the `error` event.
  await once(server, "listening");
  const { address, family, port: taken } = server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${taken}`;
}

const CLOSE_LOOK_MS = 20;

/** Stops accepting, waits `graceMs` for requests in flight, then cuts them off. */
export async function endServer(server: Server, ongoing: OngoingSet, graceMs: number): Promise<void> {
  if (!server.listening) return;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const giveUpAt = performance.now() + graceMs;
  while (ongoing.size > 0 && performance.now() < giveUpAt) {
    await new Promise((resolve) => setTimeout(resolve, CLOSE_LOOK_MS));
    server.closeIdleConnections();
  }
  for (const one of ongoing) one.cut();
  // A last response may still be on its way on a connection that Node does not count as idle yet.
  const cutOff = setTimeout(() => server.closeAllConnections(), ongoing.size > 0 ? 0 : CLOSE_LOOK_MS * 5);
  await closed;
  clearTimeout(cutOff);
}
