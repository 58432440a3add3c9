import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo, Server as NetServer } from "node:net";

/** Starts listening, and returns the URL of the server. Port 0 selects a free port. Throws if the port is not available. */
export async function listen(server: NetServer, { host, port }: { host: string; port: number }): Promise<string> {
  server.listen(port, host);
  // `once` rejects when the server emits `error`.
  await once(server, "listening");
  const { address, family, port: taken } = server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${taken}`;
}

/** Stops accepting connections, and closes all of them. */
export async function endServer(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}
