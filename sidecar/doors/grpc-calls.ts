import type {
  Http2SecureServer,
  Http2Server,
  Http2ServerRequest,
  Http2Session,
  ServerHttp2Session,
  ServerHttp2Stream,
} from "node:http2";
import type { Server as NetServer } from "node:net";
import { lookRegularly } from "../../http1/look.ts";
import { Allowance } from "../../http2/allowance.ts";
import type { DoorConnections } from "./door-connections.ts";

/*
 * The sessions of the gRPC door and the calls on them: how many there may be, how long each may take, and who is still there.
 *
 *   session ──no call in time, a ping that is not answered──► destroyed
 *      └──pings or settings without end──► told to calm down (GOAWAY), and destroyed
 *   call ──its message does not come in time, its answer is not taken in time──► reset
 *
 * Resets of calls are counted by nghttp2, which ends the session.
 */

export interface GrpcCallLimits {
  /** Calls at once, on all sessions; without those that last. */
  readonly doorCallsMax: number;
  /** For the first call of a session to begin, and for the message of a call to be there. */
  readonly requestHeadMs: number;
  /** How often a session must show that it is there. */
  readonly doorPingMs: number;
}

/** Calls that last: reflection, and those that watch the health of a service. On all sessions. */
const LASTING_MAX = 100;
/** From the beginning of a call to the end of its answer. Only a watch may take longer. */
export const CALL_MS_MAX = 60_000;
/** Libraries measure with PING and SETTINGS, so a burst is normal. */
const CONTROL_FRAMES = { burst: 1_000, perSecond: 100 };
/** For a gateway to end a call that is answered. */
const ANSWERED_MS = 1_000;
// RFC 9113, 7.
const NO_ERROR = 0;
const CANCEL = 8;
const ENHANCE_YOUR_CALM = 11;

/** How long a call may be open: for one answer, for a limited time, or for good. */
export type CallKind = "single" | "limited" | "watch";

interface OpenCall {
  readonly request: Http2ServerRequest;
  readonly kind: CallKind;
  readonly sinceMs: number;
  /** When the whole answer was handed over; 0 before. */
  answeredMs: number;
}

interface OpenSession {
  readonly sinceMs: number;
  hasAsked: boolean;
  pingedMs: number;
  /** The last ping has not been answered. */
  isAwaited: boolean;
}

/** The types of Node do not have it: with a code, GOAWAY has it. */
type Destroyable = Omit<ServerHttp2Session, "destroy"> & { destroy(code?: number): void };

export class GrpcCalls {
  readonly #limits: GrpcCallLimits;
  readonly #sessions = new Map<Http2Session, OpenSession>();
  readonly #calls = new Map<ServerHttp2Stream, OpenCall>();
  readonly #timer: NodeJS.Timeout;
  #lasting = 0;

  /** Follows the sessions of the server until `end`. */
  constructor(server: Http2Server | Http2SecureServer, limits: GrpcCallLimits) {
    this.#limits = limits;
    server.on("session", (session) => this.#follow(session));
    const shortestMs = Math.min(limits.requestHeadMs, limits.doorPingMs);
    this.#timer = lookRegularly(this.#look, shortestMs);
  }

  /** Returns false when there are too many; then the call must be refused. */
  begin(request: Http2ServerRequest, kind: CallKind): boolean {
    const { stream } = request;
    const session = stream.session && this.#sessions.get(stream.session);
    if (session !== undefined) session.hasAsked = true;
    const lasts = kind !== "single";
    if (lasts ? this.#lasting >= LASTING_MAX : this.#calls.size - this.#lasting >= this.#limits.doorCallsMax) {
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

  /** Each session is told to end (GOAWAY), and ends when what was asked on it is answered, or after `graceMs`. */
  async end(server: NetServer, graceMs: number, connections: DoorConnections): Promise<void> {
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
    this.#sessions.set(session, { sinceMs, hasAsked: false, pingedMs: sinceMs, isAwaited: false });
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
    const { requestHeadMs, doorPingMs } = this.#limits;
    for (const [stream, { request, kind, sinceMs, answeredMs }] of this.#calls) {
      // RFC 9113, 8.1: what is left of a request that is answered is not waited for.
      if (answeredMs > 0 && nowMs - answeredMs > ANSWERED_MS) stream.close(NO_ERROR);
      const tookMs = nowMs - sinceMs;
      const isLate = (kind === "single" && !request.complete && tookMs > requestHeadMs) || tookMs > CALL_MS_MAX;
      if (kind !== "watch" && isLate) stream.close(CANCEL);
    }
    for (const [session, open] of this.#sessions) {
      if (!open.hasAsked && nowMs - open.sinceMs > requestHeadMs) session.destroy();
      else if (nowMs - open.pingedMs > doorPingMs) ping(session, open, nowMs);
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
