import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy in front of a server. */
export interface Line {
  /** URL of the proxied server with the address of the proxy. */
  readonly url: string;
  /** Closes the proxy with all connections. */
  close(): Promise<void>;
}

/**
 * Listens on a free port. `carry` gets each client connection and a function that connects to the server of `url`. Errors on either side
 * close both connections.
 */
export async function openLine(url: string, carry: (near: Socket, reach: () => Socket) => void): Promise<Line> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
  };
  const reach = (): Socket => keep(connect({ host: target.hostname, port: Number(target.port), noDelay: true }));
  const server = createServer((near) => carry(keep(near), reach));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const own = new URL(url);
  own.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: own.href,
    close: async () => {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
