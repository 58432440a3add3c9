import { once } from "node:events";
import { type AddressInfo, createServer, type Server, Socket } from "node:net";
import { createServer as createTlsServer, type Server as TlsServer } from "node:tls";
import {
  ConnectionLimiter,
  type ConnectionLimiterOptions,
  type LimitAction,
  type LimitedConnection,
} from "./connection-limiter.ts";
import { guardEmits, guardRun, guardSocket, type OnInternalError } from "./guard.ts";
import {
  type ConnectionHandlers,
  type ConnectionLimits,
  type ServedConnection,
  ServerConnection,
} from "./server-connection.ts";
import { startSweep } from "./sweep.ts";

/*
 * An HTTP/1.1 server whose connections may switch to HTTP/2. It accepts connections up to a limit, closes those that time out, and closes
 * all connections when it stops.
 */

export interface ServerHandlers extends Omit<ConnectionHandlers, "preface" | "detached" | "midHeadChanged"> {
  /** Serves an HTTP/2 connection. `early` contains the bytes read so far, starting with the first one. */
  readonly http2: (socket: Socket, early: Buffer) => ServedConnection;
  /** Rejects an HTTP/2 connection because the connection limit is reached. */
  readonly refuseHttp2: (socket: Socket) => void;
  readonly connected: (socket: Socket) => void;
  /**
   * Returns the client address to which this connection is attributed; `undefined` if it is exempt from per-address limits. `ip` is the
   * remote address.
   */
  readonly sharerOf: (ip: string) => string | undefined;
  readonly mayAcquire: ConnectionLimiterOptions["mayAcquire"];
  readonly onLimitReached: (protocol: Protocol, done: LimitAction) => void;
  /** Counts and logs an exception; the server then closes the connection that caused it. Must never throw. */
  readonly onInternalError: OnInternalError;
}

export interface ServerLimits extends Omit<ConnectionLimits, "keepAliveLines"> {
  /** Maximum number of concurrent connections. TLS handshakes count, upgraded connections do not. */
  readonly clientConnectionsMax: number;
  /** Maximum number of concurrent HTTP/2 connections, which also count as client connections. */
  readonly clientHttp2ConnectionsMax: number;
}

/** Protocol of a connection, which counts as HTTP/1.1 until its HTTP/2 preface is read. */
export type Protocol = "http1" | "http2";

/** Certificate chain and private key, in PEM format. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/**
 * Maximum number of partially received heads on all connections. Each head may take about 70 KB, and its sender needs no key. Most heads
 * arrive in one read and never count.
 */
const PARTIAL_HEADS_MAX = 1_000;
const PROTOCOLS = ["h2", "http/1.1"];
/** Interval at which a closing server checks for idle connections. */
const CLOSE_POLL_MS = 20;
/** Grace period for the client to read the last response. */
const LAST_MS = 100;
/** Response to a connection beyond the limit. The server does not read the request. */
const NO_ROOM = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

export class HttpServer {
  readonly #server: Server;
  readonly #tls: TlsServer | undefined;
  /** TCP sockets of the TLS connections, including connections whose handshake is not complete. */
  readonly #below = new Set<Socket>();
  /** TLS handshakes in progress, by the client's address and port. */
  readonly #handshakes = new Map<string, LimitedConnection>();
  /** Limiter of all connections except upgraded connections. */
  readonly #room: ConnectionLimiter;
  readonly #http2Limiter: ConnectionLimiter;
  readonly #connections = new Set<ServedConnection>();
  /** Connections that wait for the rest of a head, sorted so that the longest waiting one is first. */
  readonly #midHead = new Set<ServerConnection>();
  readonly #handlers: ServerHandlers & ConnectionHandlers;
  readonly #limits: ConnectionLimits;
  #timer: NodeJS.Timeout | undefined;

  /** Creates the server, which uses TLS if there is a certificate. Throws if the certificate is invalid. */
  constructor(limits: ServerLimits, handlers: ServerHandlers, certificate?: Certificate) {
    const seconds = Math.floor(limits.keepAliveMs / 1000);
    this.#limits = { ...limits, keepAliveLines: `connection: keep-alive\r\nkeep-alive: timeout=${seconds}\r\n` };
    this.#handlers = {
      ...handlers,
      preface: (connection, early) => this.#goesOnAsHttp2(connection, early),
      // Upgraded connections have a separate limit.
      detached: (connection) => this.#room.leave(connection),
      midHeadChanged: (connection) => this.#midHeadChanged(connection),
    };
    const { mayAcquire, onLimitReached } = handlers;
    const limiterFor = (protocol: Protocol, max: number): ConnectionLimiter =>
      new ConnectionLimiter({ max, mayAcquire, onLimitReached: (done) => onLimitReached(protocol, done) });
    this.#room = limiterFor("http1", limits.clientConnectionsMax);
    this.#http2Limiter = limiterFor("http2", limits.clientHttp2ConnectionsMax);
    // `allowHalfOpen` lets a client that half-closes the connection after its request still receive its response.
    const options = { allowHalfOpen: true, noDelay: true };
    const connected = (socket: Socket): void => this.#connected(socket);
    if (certificate === undefined) this.#server = createServer(options, connected);
    else {
      const { requestHeadMs } = limits;
      const tls = { ...options, ...certificate, ALPNProtocols: PROTOCOLS, handshakeTimeout: requestHeadMs };
      this.#tls = createTlsServer(tls, connected);
      this.#server = this.#tls;
      // `tlsClientError` occurs when a handshake fails or times out.
      this.#tls.on("tlsClientError", (_error, socket) => socket.destroy());
      // A handshake takes memory and time, so the connection limit applies before it begins.
      const handshake = this.#tls.listeners("connection");
      this.#tls.removeAllListeners("connection");
      this.#tls.on("connection", (socket: Socket) => {
        if (!this.#connectedBelow(socket)) return;
        for (const listener of handshake) listener.call(this.#tls, socket);
      });
    }
    guardEmits(this.#server, ({ error, args }) => {
      handlers.onInternalError(error);
      for (const arg of args) if (arg instanceof Socket) arg.destroy();
    });
  }

  /** Sets the certificate for new connections. Throws and keeps the previous certificate if the new one is invalid. */
  setSecureContext(certificate: Certificate): void {
    this.#tls?.setSecureContext(certificate);
  }

  /** Number of open connections per protocol, excluding upgraded connections. */
  get open(): Readonly<Record<Protocol, number>> {
    const http2 = this.#http2Limiter.size;
    return { http1: this.#room.size - http2, http2 };
  }

  get isListening(): boolean {
    return this.#server.listening;
  }

  /** Starts listening, and returns the URL. Port 0 selects a free port. Throws if the port is not available. */
  async listen({ host, port }: { host: string; port: number }): Promise<string> {
    this.#server.listen(port, host);
    await once(this.#server, "listening");
    const { requestHeadMs, keepAliveMs, responseReadMs } = this.#limits;
    const shortest = Math.min(requestHeadMs, keepAliveMs, responseReadMs);
    this.#timer = startSweep(this.#look, shortest);
    const { address, family, port: taken } = this.#server.address() as AddressInfo;
    return `${this.#tls === undefined ? "http" : "https"}://${family === "IPv6" ? `[${address}]` : address}:${taken}`;
  }

  closeIdle(): void {
    for (const connection of this.#connections) connection.closeIdle();
  }

  /** Stops accepting connections, waits up to `graceMs` while `isBusy` returns true, calls `cutOff`, and closes all connections. */
  async close(graceMs: number, isBusy: () => boolean, cutOff: () => void): Promise<void> {
    if (!this.isListening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.closeIdle();
    const giveUpAt = performance.now() + graceMs;
    while (isBusy() && performance.now() < giveUpAt) {
      await new Promise((resolve) => setTimeout(resolve, CLOSE_POLL_MS));
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
    const { onInternalError } = this.#handlers;
    guardSocket(socket, onInternalError);
    const handshake = this.#tls && this.#handshakes.get(peerOf(socket));
    const sharer = this.#handlers.sharerOf(socket.remoteAddress ?? "");
    if (handshake === undefined && !this.#room.admit(sharer)) {
      socket.on("error", () => undefined);
      socket.end(NO_ROOM);
      socket.destroySoon();
      return;
    }
    const connection = new ServerConnection(socket, this.#limits, this.#handlers, onInternalError);
    if (handshake === undefined) this.#room.enter(connection, sharer);
    else this.#room.replace(handshake, connection);
    this.#follow(connection);
    socket.once("close", () => this.#midHead.delete(connection));
    this.#handlers.connected(socket);
  }

  /** Registers a TCP socket below TLS. Returns false if the connection limit is reached. */
  #connectedBelow(socket: Socket): boolean {
    const sharer = this.#handlers.sharerOf(socket.remoteAddress ?? "");
    if (!this.#room.admit(sharer)) {
      socket.destroy();
      return false;
    }
    const peer = peerOf(socket);
    const handshake: LimitedConnection = { idleSinceMs: performance.now(), evict: () => socket.destroy() };
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
      this.#http2Limiter.leave(connection);
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
    if (!this.#http2Limiter.admit(sharer)) {
      this.#handlers.refuseHttp2(socket);
      return;
    }
    this.#connections.delete(connection);
    const http2 = this.#handlers.http2(socket, early);
    // The HTTP/1.1 connection has just left the limiter, so a slot is free for the same connection as HTTP/2.
    this.#room.enter(http2, sharer);
    this.#http2Limiter.enter(http2, sharer);
    this.#follow(http2);
  }

  readonly #look = (): void => {
    const nowMs = performance.now();
    for (const connection of this.#connections) guardRun(() => connection.look(nowMs), this.#handlers.onInternalError);
  };
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
