import type { Logger } from "pino";
import type { Edge } from "../edge/open.ts";

export interface SidecarConfig {
  /** Everything shared comes through it; whoever opened it closes it. */
  readonly edge: Edge;
  readonly workspaceId: string;
  readonly policyId: string;
  /** `http://host:port` of the app. */
  readonly upstream: string;
  readonly listen: Address;
  /** Probes and metrics only. */
  readonly admin: Address;
  readonly podId: string;
  readonly region: string;
  readonly timeouts?: Partial<Timeouts>;
  readonly limits?: Partial<Limits>;
  /** What error types begin with: `{errorDocsUrl}/errors/<kind>`. */
  readonly errorDocsUrl: string;
  readonly logger: Logger;
  /** Internal, for the benchmark that compares with a plain proxy: nothing is checked. No flag or environment leads here. */
  readonly checks?: false;
}

export interface Address {
  readonly host: string;
  /** 0 lets the kernel choose. */
  readonly port: number;
}

export interface Timeouts {
  /** To reach the app; and to wait for a connection when all that may be open are taken. */
  readonly connectMs: number;
  /** From the whole request sent to the head of the app's answer. */
  readonly headersMs: number;
  /** Without a byte of the app's answer while the client waits for it. */
  readonly bodyIdleMs: number;
  /** For a client to take what was written to it of an answer: 64 KiB at most. */
  readonly answerIdleMs: number;
  /** Without a byte of a request's body while the app waits for it. */
  readonly requestBodyIdleMs: number;
  /** For an answer to a client that has ended its own direction, without a byte of it: it may be gone altogether. */
  readonly halfClosedMs: number;
  /** For a client to send the head of a request. */
  readonly requestHeadMs: number;
  /** How long a client's connection may be idle between requests. */
  readonly keepAliveMs: number;
  /** How long requests under way may still take when the sidecar closes. */
  readonly closeMs: number;
  /** How long a request waits for the credits of its key to be loaded. */
  readonly creditLoadMs: number;
  /** After which time, and how often from then on, connections and streams that stay open are checked again. */
  readonly recheckMs: number;
  readonly reportMs: number;
  /** A slow store is not an absent one, but a request does not wait for it for longer. */
  readonly counterMs: number;
}

export interface Limits {
  readonly headBytesMax: number;
  /** Of a body that is refused: read to its end up to here, so that the client gets to read the answer. */
  readonly drainBytesMax: number;
  /** Requests that are with the app at once. */
  readonly upstreamConnectionsMax: number;
  /** Connections that are upgraded, or being upgraded, at once. */
  readonly upgradesMax: number;
  /** What one client address alone may hold of either, over 0 up to 1; fewer while others hold some. At 1 addresses do not count. */
  readonly addressShare: number;
  /** A request's body of no more than this, as its Content-Length says, is with the app only when all of it is here. */
  readonly wholeBodyBytesMax: number;
  /** Bytes per second of a request's body while the app waits for it, over each `requestBodyIdleMs`. 0 sets no floor. */
  readonly bodyBytesPerSecondMin: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = {
  connectMs: 5_000,
  headersMs: 300_000,
  bodyIdleMs: 300_000,
  // The kernel reports room only when a third of its buffer is free, which is up to 1.3 MB: a reader of 11 KB per second gets by.
  answerIdleMs: 120_000,
  // Long enough for most answers; as long as that, the app works for clients that hung up.
  halfClosedMs: 10_000,
  // A client that has begun has its body at hand, unless it makes it as it sends; networks that lose packets recover in less.
  requestBodyIdleMs: 10_000,
  requestHeadMs: 30_000,
  // Longer than the idle time of common load balancers, so that it is they who close and no request meets a closed door.
  keepAliveMs: 75_000,
  closeMs: 2_000,
  creditLoadMs: 250,
  recheckMs: 10_000,
  reportMs: 5_000,
  counterMs: 50,
};

export const DEFAULT_LIMITS: Limits = {
  headBytesMax: 16 * 1024,
  drainBytesMax: 1024 * 1024,
  // Far more than an app serves at a time, unless it streams, and few enough for its backlog and file descriptors.
  upstreamConnectionsMax: 1_000,
  // Idle for the most part, so there may be more of them; each costs two file descriptors and some 30 KB.
  upgradesMax: 10_000,
  // One client cannot shut out the others, and a proxy before the gate whose clients cannot be told apart still gets half.
  addressShare: 0.5,
  // Nearly all bodies of APIs. What waits for places is at most a packet or two per connection.
  wholeBodyBytesMax: 16 * 1024,
  // Slower than any modem; what drips on purpose is slower still.
  bodyBytesPerSecondMin: 240,
};
