import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** When a connection breaks: before the n-th message of the client reaches the server, or after it, so that only the reply is lost. */
export interface Break {
  readonly message: number;
  readonly when: "before" | "after";
}

/** A TCP proxy to a server whose connections break at a given message, as when the client's process dies there. */
export interface BreakingLine {
  readonly url: string;
  /** Counts messages from now on; undefined lets all pass. */
  arm(at: Break | undefined): void;
  close(): Promise<void>;
}

/** `url` is that of the server behind the line; the rest of it is kept. */
export async function openBreakingLine(url: string): Promise<BreakingLine> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let armed: Break | undefined;
  let messages = 0;
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    const far = keep(connect({ host: target.hostname, port: Number(target.port), noDelay: true }));
    keep(near);
    let isOver = false;
    near.on("data", (bytes: Buffer) => {
      messages += 1;
      if (armed?.message !== messages) return void far.write(bytes);
      // The server carries out what it has received, and then finds the connection closed.
      isOver = true;
      if (armed.when === "after") far.end(bytes);
      else far.destroy();
      near.destroy();
    });
    far.on("data", (bytes: Buffer) => void near.write(bytes));
    near.on("close", () => {
      if (!isOver) far.destroy();
    });
    far.on("close", () => near.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const own = new URL(url);
  own.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: own.href,
    arm: (at) => {
      armed = at;
      messages = 0;
    },
    close: async () => {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
