import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy that can be cut for one client while others keep their connections. */
export interface Line {
  readonly url: string;
  /** Client connections since the start, and the maximum of open ones. */
  readonly opened: number;
  readonly openMax: number;
  /** Closes every connection and rejects new ones until `mend`. */
  cut(): void;
  /** Open connections stop carrying data, as when a network drops them silently; new ones work. */
  hang(): void;
  mend(): void;
  /** New connections whose first bytes contain this text get no response until a call without text. */
  hold(text?: string): void;
  close(): Promise<void>;
}

/** `url` is the URL of the proxied server; its scheme is kept. */
export async function openLine(url: string): Promise<Line> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let isCut = false;
  let heldText: string | undefined;
  const held = new Set<() => void>();
  let opened = 0;
  let open = 0;
  let openMax = 0;
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
    return socket;
  };
  const server = createServer((near) => {
    if (isCut) return void near.destroy();
    opened += 1;
    open += 1;
    openMax = Math.max(openMax, open);
    const far = keep(connect({ host: target.hostname, port: Number(target.port) }));
    const carry = () => void keep(near).pipe(far).pipe(near);
    if (heldText === undefined) carry();
    else {
      keep(near).once("data", (first: Buffer) => {
        near.pause().unshift(first);
        if (heldText !== undefined && first.includes(heldText)) held.add(carry);
        else carry();
      });
    }
    near.on("close", () => {
      open -= 1;
      far.destroy();
    });
    far.on("close", () => near.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = (): void => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `${target.protocol}//127.0.0.1:${(server.address() as AddressInfo).port}`,
    get opened() {
      return opened;
    },
    get openMax() {
      return openMax;
    },
    cut,
    hang: () => {
      for (const socket of sockets) socket.unpipe().pause();
    },
    mend: () => {
      isCut = false;
    },
    hold: (text) => {
      heldText = text;
      if (text !== undefined) return;
      for (const carry of held) carry();
      held.clear();
    },
    close: async () => {
      cut();
      const closed = once(server, "close");
      server.close();
      await closed;
    },
  };
}
