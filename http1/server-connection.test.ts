import { connect, type Socket } from "node:net";
import { afterEach, describe, test } from "vitest";
import { waitFor } from "../test/harness/wait.ts";
import type { ParseFault } from "./message-parser.ts";
import { HttpServer } from "./server.ts";
import type { ServerExchange } from "./server-exchange.ts";

/* The server by itself: what it does with the connections of its clients. */

interface Opened {
  readonly exchanges: ServerExchange[];
  readonly faults: Array<ParseFault | "late">;
  readonly thrown: unknown[];
  /** The server's side of the connections. */
  readonly sockets: Socket[];
  readonly dial: (bytes?: string) => Client;
  readonly server: HttpServer;
}

interface Client {
  readonly socket: Socket;
  readonly text: () => string;
}

let opened: Opened;
let clients: Socket[] = [];
afterEach(async () => {
  for (const client of clients) client.destroy();
  clients = [];
  await opened.server.close(
    0,
    () => false,
    () => undefined,
  );
});

const LIMITS = {
  headBytesMax: 16 * 1024,
  requestHeadMs: 10_000,
  keepAliveMs: 10_000,
  drainBytesMax: 64 * 1024,
  answerIdleMs: 10_000,
};

async function open(
  onRequest: (exchange: ServerExchange) => void = () => undefined,
  limits: Partial<typeof LIMITS> = {},
): Promise<void> {
  const exchanges: ServerExchange[] = [];
  const faults: Array<ParseFault | "late"> = [];
  const thrown: unknown[] = [];
  const sockets: Socket[] = [];
  const server = new HttpServer(
    { ...LIMITS, ...limits },
    {
      connected: (socket) => sockets.push(socket),
      request: (exchange) => {
        exchanges.push(exchange);
        onRequest(exchange);
      },
      malformed: (fault, connection, exchange) => {
        faults.push(fault);
        if (exchange === undefined) connection.endReading();
        else exchange.socket.destroy();
      },
      isClosing: () => false,
      onDiscarded: () => undefined,
      onFault: (error) => thrown.push(error),
    },
  );
  const port = Number(new URL(await server.listen({ host: "127.0.0.1", port: 0 })).port);
  const dial = (bytes = ""): Client => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    clients.push(socket);
    let text = "";
    socket.on("error", () => undefined).on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    if (bytes !== "") socket.write(bytes, "latin1");
    return { socket, text: () => text };
  };
  opened = { exchanges, faults, thrown, sockets, dial, server };
}

function answer(exchange: ServerExchange, content: string | Buffer = "ok"): void {
  const bytes = Buffer.from(content);
  const lines = `content-length: ${bytes.length}\r\n`;
  exchange.begin({ status: 200, reason: undefined, lines, length: bytes.length, isDated: true });
  exchange.end(bytes);
}

const get = (path: string, ...lines: string[]): string =>
  `${[`GET ${path} HTTP/1.1`, "Host: a", ...lines].join("\r\n")}\r\n\r\n`;

describe("a client that does not take its last response", () => {
  const LARGE = Buffer.alloc(32 * 1024 * 1024, "l");

  test.each([
    { name: "and asked for the end of the connection", lines: ["Connection: close"], halfCloses: false },
    { name: "and has ended its direction", lines: ["Connection: close"], halfCloses: true },
    { name: "and has ended its direction, on a kept connection", lines: [], halfCloses: true },
    { name: "on a kept connection", lines: [], halfCloses: false },
  ])("is closed, $name", async ({ lines, halfCloses }) => {
    await open((exchange) => answer(exchange, LARGE), { answerIdleMs: 200 });
    const { socket } = opened.dial(get("/", ...lines));
    socket.pause();
    if (halfCloses) socket.end();
    await waitFor("the server's side to be closed", () => opened.sockets[0]?.destroyed === true);
  });

  test("also when the client ended its direction before the response", async () => {
    await open(
      (exchange) => {
        exchange.keepsAlive = false;
        exchange.lingers = true;
        exchange.onInputEnd = () => answer(exchange, LARGE);
      },
      { answerIdleMs: 200 },
    );
    opened.dial(get("/")).socket.pause().end();
    await waitFor("the server's side to be closed", () => opened.sockets[0]?.destroyed === true);
  });

  test("also when it lingers because of what the client still sends", async () => {
    await open(
      (exchange) => {
        exchange.keepsAlive = false;
        exchange.lingers = true;
        answer(exchange, LARGE);
      },
      { answerIdleMs: 200 },
    );
    const { socket } = opened.dial(get("/"));
    socket.pause();
    socket.end();
    await waitFor("the server's side to be closed", () => opened.sockets[0]?.destroyed === true);
  });
});
