import { once } from "node:events";
import { type AddressInfo, createServer, type Server, Socket } from "node:net";
import { createServer as createTlsServer, type Server as TlsServer } from "node:tls";
import { ConnectionRoom, type Crowded, type Guest, type RoomOptions } from "./connection-room.ts";
import { guardEmits, guardRun, guardSocket, type OnFault } from "./guard.ts";
import { lookRegularly } from "./look.ts";
import {
  type ConnectionHandlers,
  type ConnectionLimits,
  type ServedConnection,
  ServerConnection,
} from "./server-connection.ts";

/*
 * A server of HTTP/1.1, whose connections may turn out to be of HTTP/2: it accepts connections as far as there is room, looks at all of them
 * now and then for what waits too long, and closes them.
 */

export interface ServerHandlers extends Omit<ConnectionHandlers, "preface" | "detached" | "midHeadChanged"> {
  /** Serves a connection of HTTP/2, from its first byte on. */
  readonly http2: (socket: Socket, early: Buffer) => ServedConnection;
  /** Closes a connection of HTTP/2 for which there is no room. */
  readonly refuseHttp2: (socket: Socket) => void;
  readonly connected: (socket: Socket) => void;
  /** For whose share of the connections this one counts; undefined for none. `ip` is the address that it comes from. */
  readonly sharerOf: (ip: string) => string | undefined;
  readonly mayHold: RoomOptions["mayHold"];
  readonly onCrowded: (protocol: Protocol, done: Crowded) => void;
  /** Counts and logs what was thrown. Never throws. Its connection is closed. */
  readonly onFault: OnFault;
}

export interface ServerLimits extends Omit<ConnectionLimits, "keepAliveLines"> {
  /** Connections at once, with those whose TLS handshake is not over, and without those that were upgraded. */
  readonly clientConnectionsMax: number;
  /** Of them, those of HTTP/2. */
  readonly clientHttp2ConnectionsMax: number;
}

/** A connection counts as one of HTTP/1.1 until it turns out to be of HTTP/2. */
export type Protocol = "http1" | "http2";

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
/** For a connection that there is no room for. Nothing is read of it. */
const NO_ROOM = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

export class HttpServer {
  readonly #server: Server;
  readonly #tls: TlsServer | undefined;
  /** The connections below TLS, with those whose handshake is not over. */
  readonly #below = new Set<Socket>();
  /** The handshakes under way, by the client's address and port. */
  readonly #handshakes = new Map<string, Guest>();
  /** All connections but the upgraded ones. */
  readonly #room: ConnectionRoom;
  readonly #http2Room: ConnectionRoom;
  readonly #connections = new Set<ServedConnection>();
  /** Those that wait for the rest of a head, the longest waiting first. */
  readonly #midHead = new Set<ServerConnection>();
  readonly #handlers: ServerHandlers & ConnectionHandlers;
  readonly #limits: ConnectionLimits;
  #timer: NodeJS.Timeout | undefined;

  /** With a certificate, connections are those of TLS. Throws when it is not usable. */
  constructor(limits: ServerLimits, handlers: ServerHandlers, certificate?: Certificate) {
    const seconds = Math.floor(limits.keepAliveMs / 1000);
    this.#limits = { ...limits, keepAliveLines: `connection: keep-alive\r\nkeep-alive: timeout=${seconds}\r\n` };
    this.#handlers = {
      ...handlers,
      preface: (connection, early) => this.#goesOnAsHttp2(connection, early),
      // What is upgraded has bounds of its own.
      detached: (connection) => this.#room.leave(connection),
      midHeadChanged: (connection) => this.#midHeadChanged(connection),
    };
    const { mayHold, onCrowded } = handlers;
    const roomFor = (protocol: Protocol, max: number): ConnectionRoom =>
      new ConnectionRoom({ max, mayHold, onCrowded: (done) => onCrowded(protocol, done) });
    this.#room = roomFor("http1", limits.clientConnectionsMax);
    this.#http2Room = roomFor("http2", limits.clientHttp2ConnectionsMax);
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
      // A handshake takes memory and time, so there has to be room before it begins.
      const handshake = this.#tls.listeners("connection");
      this.#tls.removeAllListeners("connection");
      this.#tls.on("connection", (socket: Socket) => {
        if (!this.#connectedBelow(socket)) return;
        for (const listener of handshake) listener.call(this.#tls, socket);
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

  /** Connections that are open, but for upgraded ones. */
  get open(): Readonly<Record<Protocol, number>> {
    const http2 = this.#http2Room.size;
    return { http1: this.#room.size - http2, http2 };
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
    const handshake = this.#tls && this.#handshakes.get(peerOf(socket));
    const sharer = this.#handlers.sharerOf(socket.remoteAddress ?? "");
    if (handshake === undefined && !this.#room.makeRoomFor(sharer)) {
      socket.on("error", () => undefined);
      socket.end(NO_ROOM);
      socket.destroySoon();
      return;
    }
    const connection = new ServerConnection(socket, this.#limits, this.#handlers, onFault);
    if (handshake === undefined) this.#room.enter(connection, sharer);
    else this.#room.replace(handshake, connection);
    this.#follow(connection);
    socket.once("close", () => this.#midHead.delete(connection));
    this.#handlers.connected(socket);
  }

  /** Returns false when there is no room for it. */
  #connectedBelow(socket: Socket): boolean {
    const sharer = this.#handlers.sharerOf(socket.remoteAddress ?? "");
    if (!this.#room.makeRoomFor(sharer)) {
      socket.destroy();
      return false;
    }
    const peer = peerOf(socket);
    const handshake: Guest = { idleSinceMs: performance.now(), makeRoom: () => socket.destroy() };
    this.#below.add(socket);
    this.#handshakes.set(peer, handshake);
    this.#room.enter(handshake, sharer);
    socket.once("close", () => {
      this.#below.delete(socket);
      this.#room.leave(handshake);
      if (this.#handshakes.get(peer) === handshake) this.#handshakes.delete(peer);
    });
    return true;
  }

  #follow(connection: ServedConnection): void {
    this.#connections.add(connection);
    connection.socket.once("close", () => {
      this.#connections.delete(connection);
      this.#room.leave(connection);
      this.#http2Room.leave(connection);
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
    const { socket } = connection;
    const sharer = this.#handlers.sharerOf(socket.remoteAddress ?? "");
    if (!this.#http2Room.makeRoomFor(sharer)) {
      this.#handlers.refuseHttp2(socket);
      return;
    }
    this.#connections.delete(connection);
    const http2 = this.#handlers.http2(socket, early);
    // It has just left it as a connection of HTTP/1.1.
    this.#room.enter(http2, sharer);
    this.#http2Room.enter(http2, sharer);
    this.#follow(http2);
  }

  readonly #look = (): void => {
    const nowMs = performance.now();
    for (const connection of this.#connections) guardRun(() => connection.look(nowMs), this.#handlers.onFault);
  };
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
