import type {
  Http2SecureServer,
  Http2Server,
  Http2ServerRequest,
  Http2Session,
  ServerHttp2Session,
  ServerHttp2Stream,
} from "node:http2";
import type { Server as NetServer } from "node:net";
import { startSweep } from "../../http/http1/sweep.ts";
import { Allowance } from "../../http/http2/allowance.ts";
import type { ExtAuthConnections } from "./connections.ts";

/*
 * Limits the number and duration of sessions and calls of the gRPC ext-auth endpoint, and closes sessions whose peers do not respond.
 *
 *   session ──no call in time, a ping without response──► destroyed
 *      └──too many pings or settings──► GOAWAY with ENHANCE_YOUR_CALM, and destroyed
 *   call ──its message does not arrive in time, its response is not read in time──► reset
 *
 * nghttp2 limits call resets: it closes a session with too many of them.
 */

export interface GrpcCallLimits {
  /** Maximum number of concurrent calls on all sessions, excluding long-lived calls. */
  readonly extAuthCallsMax: number;
  /** Maximum time until the first call of a session begins, and maximum time until the message of a call arrives. */
  readonly requestHeadMs: number;
  /** Interval of pings on each session. */
  readonly extAuthPingMs: number;
}

/** Maximum number of long-lived calls on all sessions: reflection and health watches. */
const LASTING_MAX = 100;
/** Maximum time from the start of a call to the end of its response. Only a health watch may take longer. */
export const CALL_MS_MAX = 60_000;
/** Budget of PING and SETTINGS frames. Client libraries send them to measure connections, so a burst is normal. */
const CONTROL_FRAMES = { burst: 1_000, perSecond: 100 };
/** Maximum time for a gateway to end a call after the complete response. */
const ANSWERED_MS = 1_000;
// Error code (RFC 9113, section 7).
const NO_ERROR = 0;
const CANCEL = 8;
const ENHANCE_YOUR_CALM = 11;

/**
 * Permitted duration of a call. A `single` call ends with one response, a `limited` one after a fixed time, and a `watch` may stay open
 * indefinitely.
 */
export type CallKind = "single" | "limited" | "watch";

interface OpenCall {
  readonly request: Http2ServerRequest;
  readonly kind: CallKind;
  readonly sinceMs: number;
  /** Time at which the complete response was written, as `performance.now()`; 0 until then. */
  answeredMs: number;
}

interface OpenSession {
  readonly sinceMs: number;
  hasRequested: boolean;
  pingedMs: number;
  /** Whether the peer has not yet responded to the last ping. */
  isAwaited: boolean;
}

/** Session whose `destroy` accepts an error code for GOAWAY. Node's types omit this argument. */
type Destroyable = Omit<ServerHttp2Session, "destroy"> & { destroy(code?: number): void };

export class GrpcCalls {
  readonly #limits: GrpcCallLimits;
  readonly #sessions = new Map<Http2Session, OpenSession>();
  readonly #calls = new Map<ServerHttp2Stream, OpenCall>();
  readonly #timer: NodeJS.Timeout;
  #lasting = 0;

  /** Tracks the sessions of the server until `end` is called. */
  constructor(server: Http2Server | Http2SecureServer, limits: GrpcCallLimits) {
    this.#limits = limits;
    server.on("session", (session) => this.#follow(session));
    const shortestMs = Math.min(limits.requestHeadMs, limits.extAuthPingMs);
    this.#timer = startSweep(this.#look, shortestMs);
  }

  /** Registers a call. Returns false at the limit; the caller must then reject the call. */
  begin(request: Http2ServerRequest, kind: CallKind): boolean {
    const { stream } = request;
    const session = stream.session && this.#sessions.get(stream.session);
    if (session !== undefined) session.hasRequested = true;
    const lasts = kind !== "single";
    if (lasts ? this.#lasting >= LASTING_MAX : this.#calls.size - this.#lasting >= this.#limits.extAuthCallsMax) {
      return false;
    }
    if (stream.destroyed) return true;
    const call: OpenCall = { request, kind, sinceMs: performance.now(), answeredMs: 0 };
    this.#calls.set(stream, call);
    if (lasts) this.#lasting += 1;
    stream.once("finish", () => {
      call.answeredMs = performance.now();
    });
    stream.once("close", () => {
      this.#calls.delete(stream);
      if (lasts) this.#lasting -= 1;
    });
    return true;
  }

  /** Sends GOAWAY on each session. A session ends when its calls in flight are complete, and no later than after `graceMs`. */
  async end(server: NetServer, graceMs: number, connections: ExtAuthConnections): Promise<void> {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const session of this.#sessions.keys()) session.close();
    const cutOff = setTimeout(() => {
      for (const session of this.#sessions.keys()) session.destroy();
      connections.closeAll();
    }, graceMs);
    await closed;
    clearTimeout(cutOff);
    clearInterval(this.#timer);
  }

  #follow(session: ServerHttp2Session): void {
    const sinceMs = performance.now();
    this.#sessions.set(session, { sinceMs, hasRequested: false, pingedMs: sinceMs, isAwaited: false });
    session.once("close", () => this.#sessions.delete(session));
    const allowance = new Allowance(CONTROL_FRAMES, sinceMs);
    const control = (): void => {
      if (!allowance.take(performance.now())) (session as Destroyable).destroy(ENHANCE_YOUR_CALM);
    };
    session.on("ping", control);
    session.on("remoteSettings", control);
  }

  readonly #look = (): void => {
    const nowMs = performance.now();
    const { requestHeadMs, extAuthPingMs } = this.#limits;
    for (const [stream, { request, kind, sinceMs, answeredMs }] of this.#calls) {
      // A server need not wait for the rest of a request after its complete response (RFC 9113, section 8.1).
      if (answeredMs > 0 && nowMs - answeredMs > ANSWERED_MS) stream.close(NO_ERROR);
      const tookMs = nowMs - sinceMs;
      const isLate = (kind === "single" && !request.complete && tookMs > requestHeadMs) || tookMs > CALL_MS_MAX;
      if (kind !== "watch" && isLate) stream.close(CANCEL);
    }
    for (const [session, open] of this.#sessions) {
      if (!open.hasRequested && nowMs - open.sinceMs > requestHeadMs) session.destroy();
      else if (nowMs - open.pingedMs > extAuthPingMs) ping(session, open, nowMs);
    }
  };
}

function ping(session: Http2Session, open: OpenSession, nowMs: number): void {
  if (open.isAwaited) {
    session.destroy();
    return;
  }
  open.isAwaited = true;
  open.pingedMs = nowMs;
  session.ping(() => {
    open.isAwaited = false;
  });
}
