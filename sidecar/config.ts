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
  /** Without a byte of a body moving, in either direction. */
  readonly bodyIdleMs: number;
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
  /** Requests that are with the app at once. Upgraded connections are not counted. */
  readonly upstreamConnectionsMax: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = {
  connectMs: 5_000,
  headersMs: 300_000,
  bodyIdleMs: 300_000,
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
};
