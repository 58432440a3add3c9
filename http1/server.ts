import { once } from "node:events";
import { type AddressInfo, createServer, type Server, Socket } from "node:net";
import { createServer as createTlsServer, type Server as TlsServer } from "node:tls";
import { guardEmits, guardRun, guardSocket, type OnFault } from "./guard.ts";
import { lookRegularly } from "./look.ts";
import {
  type ConnectionHandlers,
  type ConnectionLimits,
  type ServedConnection,
  ServerConnection,
} from "./server-connection.ts";

/* A server of HTTP/1.1, whose connections may turn out to be of HTTP/2: it accepts connections, looks at all of them now and then for what waits too long, and closes them. */

export interface ServerHandlers extends Omit<ConnectionHandlers, "preface" | "midHeadChanged"> {
  /** Serves a connection of HTTP/2, from its first byte on. */
  readonly http2: (socket: Socket, early: Buffer) => ServedConnection;
  readonly connected: (socket: Socket) => void;
  /** Counts and logs what was thrown. Never throws. Its connection is closed. */
  readonly onFault: OnFault;
}

/** PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/**
 * Heads that have come in part, on all connections together. A part may take some 70 KB, and its sender needs no key. Nearly all heads are read
 * at once.
 */
const PARTIAL_HEADS_MAX = 1_000;
const PROTOCOLS = ["h2", "http/1.1"];
/** How often an ending server looks for connections that have become idle. */
const CLOSE_LOOK_MS = 20;
/** For the last response of a connection to be taken. */
const LAST_MS = 100;

export class HttpServer {
  readonly #server: Server;
  readonly #tls: TlsServer | undefined;
  /** The connections below TLS, with those whose handshake is not over. */
  readonly #below = new Set<Socket>();
  readonly #connections = new Set<ServedConnection>();
  /** Those that wait for the rest of a head, the longest waiting first. */
  readonly #midHead = new Set<ServerConnection>();
  readonly #handlers: ServerHandlers & ConnectionHandlers;
  readonly #limits: ConnectionLimits;
  #timer: NodeJS.Timeout | undefined;

  /** With a certificate, connections are those of TLS. Throws when it is not usable. */
  constructor(limits: Omit<ConnectionLimits, "keepAliveLines">, handlers: ServerHandlers, certificate?: Certificate) {
    const seconds = Math.floor(limits.keepAliveMs / 1000);
    this.#limits = { ...limits, keepAliveLines: `connection: keep-alive\r\nkeep-alive: timeout=${seconds}\r\n` };
    this.#handlers = {
      ...handlers,
      preface: (connection, early) => this.#goesOnAsHttp2(connection, early),
      midHeadChanged: (connection) => this.#midHeadChanged(connection),
    };
    // A client that ends its direction after its request gets its response.
    const options = { allowHalfOpen: true, noDelay: true };
    const connected = (socket: Socket): void => this.#connected(socket);
    if (certificate === undefined) this.#server = createServer(options, connected);
    else {
      const { requestHeadMs } = limits;
      const tls = { ...options, ...certificate, ALPNProtocols: PROTOCOLS, handshakeTimeout: requestHeadMs };
      this.#tls = createTlsServer(tls, connected);
      this.#server = this.#tls;
      // A handshake that fails, or takes too long.
      this.#tls.on("tlsClientError", (_error, socket) => socket.destroy());
      this.#server.on("connection", (socket) => {
        this.#below.add(socket);
        socket.once("close", () => this.#below.delete(socket));
      });
    }
    guardEmits(this.#server, ({ error, args }) => {
      handlers.onFault(error);
      for (const arg of args) if (arg instanceof Socket) arg.destroy();
    });
  }

  /** Connections from now on get this certificate. Throws when it is not usable, and then keeps the last one. */
  setSecureContext(certificate: Certificate): void {
    this.#tls?.setSecureContext(certificate);
  }

  get isListening(): boolean {
    return this.#server.listening;
  }

  /** Returns the URL. Port 0 picks a free port. Throws when the port is not available. */
  async listen({ host, port }: { host: string; port: number }): Promise<string> {
    this.#server.listen(port, host);
    // Rejects with the `error` event.
    await once(this.#server, "listening");
    const { requestHeadMs, keepAliveMs, answerIdleMs } = this.#limits;
    const shortest = Math.min(requestHeadMs, keepAliveMs, answerIdleMs);
    this.#timer = lookRegularly(this.#look, shortest);
    const { address, family, port: taken } = this.#server.address() as AddressInfo;
    return `${this.#tls === undefined ? "http" : "https"}://${family === "IPv6" ? `[${address}]` : address}:${taken}`;
  }

  closeIdle(): void {
    for (const connection of this.#connections) connection.closeIdle();
  }

  /** Stops accepting, waits up to `graceMs` while `isBusy`, then calls `cutOff`, and closes every connection. */
  async close(graceMs: number, isBusy: () => boolean, cutOff: () => void): Promise<void> {
    if (!this.isListening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.closeIdle();
    const giveUpAt = performance.now() + graceMs;
    while (isBusy() && performance.now() < giveUpAt) {
      await new Promise((resolve) => setTimeout(resolve, CLOSE_LOOK_MS));
      this.closeIdle();
    }
    const wasBusy = isBusy();
    cutOff();
    const closeAll = setTimeout(() => this.#closeAll(), wasBusy ? 0 : LAST_MS);
    await closed;
    clearTimeout(closeAll);
    clearInterval(this.#timer);
  }

  #closeAll(): void {
    for (const { socket } of this.#connections) socket.destroy();
    for (const socket of this.#below) socket.destroy();
  }

  #connected(socket: Socket): void {
    const { onFault } = this.#handlers;
    guardSocket(socket, onFault);
    const connection = new ServerConnection(socket, this.#limits, this.#handlers, onFault);
    this.#follow(connection);
    socket.once("close", () => this.#midHead.delete(connection));
    this.#handlers.connected(socket);
  }

  #follow(connection: ServedConnection): void {
    this.#connections.add(connection);
    connection.socket.once("close", () => {
      this.#connections.delete(connection);
      connection.closed();
    });
  }

  #midHeadChanged(connection: ServerConnection): void {
    if (!connection.isMidHead) {
      this.#midHead.delete(connection);
      return;
    }
    this.#midHead.add(connection);
    if (this.#midHead.size <= PARTIAL_HEADS_MAX) return;
    const [longest] = this.#midHead;
    if (longest === undefined) return;
    this.#midHead.delete(longest);
    this.#handlers.malformed("late", longest, undefined);
  }

  #goesOnAsHttp2(connection: ServerConnection, early: Buffer): void {
    this.#connections.delete(connection);
    this.#follow(this.#handlers.http2(connection.socket, early));
  }

  readonly #look = (): void => {
    const nowMs = performance.now();
    for (const connection of this.#connections) guardRun(() => connection.look(nowMs), this.#handlers.onFault);
  };
}
