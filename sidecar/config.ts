import type { Logger } from "pino";
import type { GateProbes } from "../core/gates/probes.ts";
import type { IpRange } from "../core/verification/ip-address.ts";
import type { Certificate } from "../edge/follow-certificate.ts";
import type { Edge } from "../edge/open.ts";
import type { CacheSize } from "./cache-limits.ts";
import type { Snapshot } from "./snapshot/snapshot.ts";

export interface SidecarConfig {
  /** Access to the shared store. The caller opens it before it starts the gate, and closes it after the gate has closed. */
  readonly edge: Edge;
  readonly workspaceId: string;
  readonly policyId: string;
  /** URL of the app, `http://host:port`; `undefined` if the gate serves only ext-auth endpoints. */
  readonly upstream?: string | undefined;
  /** Protocol of the app. Default: `http1`. With `h2c`, upgrades still use HTTP/1.1. */
  readonly upstreamProtocol?: UpstreamProtocol | undefined;
  /** Address on which the gate accepts requests to the app. */
  readonly listen: Address;
  /** Returns the current TLS certificate. Default: no TLS. */
  readonly tls?: (() => Certificate) | undefined;
  /** Endpoints at which gateways request decisions. Default: none. */
  readonly extAuth?: ExtAuthConfig | undefined;
  /** Address that serves probes and metrics. */
  readonly admin: Address;
  readonly podId: string;
  /** Token that `GET /drain` on the admin port requires; the call starts the shutdown. Default: the gate does not serve this path. */
  readonly hookToken?: string | undefined;
  /** Probes of the app that kubelet requests from the admin port. Default: none. */
  readonly probes?: GateProbes | undefined;
  readonly region: string;
  /** Snapshot on the scratch disk of the pod. Default: none. */
  readonly snapshot?: Snapshot | undefined;
  readonly timeouts?: Partial<Timeouts>;
  readonly limits?: Partial<Limits>;
  readonly cache?: CacheSize | undefined;
  /** Base URL of error types, which have the form `{errorDocsUrl}/errors/<kind>`. */
  readonly errorDocsUrl: string;
  readonly logger: Logger;
  /** Disables the checks, for a benchmark against a plain proxy. Internal: no flag or environment variable sets it. */
  readonly checks?: false;
}

export type UpstreamProtocol = "http1" | "h2c";

export interface Address {
  readonly host: string;
  /** Port number; 0 selects a free port. */
  readonly port: number;
}

export interface ExtAuthConfig {
  /** Address of the HTTP ext-auth endpoint. */
  readonly authorize?: Address | undefined;
  /** Address of the gRPC ext-auth endpoint, which serves Envoy's ext_authz and rate limit service. */
  readonly grpc?: Address | undefined;
  /**
   * Addresses of trusted gateways. The gate believes what they report about a request and its client. Ignored if gateways must present
   * certificates.
   */
  readonly trusted: readonly IpRange[];
  /**
   * Returns the current TLS certificate for the ext-auth endpoints. If it has a `ca`, clients must present a certificate that this
   * authority has issued. A `ca` cannot be added or removed while the gate runs.
   */
  readonly tls?: (() => Certificate) | undefined;
}

export interface Timeouts {
  /** Maximum time to connect to the app, and maximum time to wait for a concurrency slot. */
  readonly connectMs: number;
  /** Maximum time from the end of the request to the head of the app's response. */
  readonly headersMs: number;
  /** Maximum time between two bytes of the app's response. Time during which the client is too slow to read does not count. */
  readonly bodyIdleMs: number;
  /** Replaces `bodyIdleMs` for server-sent event streams, which may be idle for a long time. */
  readonly eventsIdleMs: number;
  /** Maximum time without a byte in either direction of an upgraded connection; 0 means no limit. */
  readonly tunnelIdleMs: number;
  /** Maximum time for a client to read the part of a response that is already written (at most 64 KiB). */
  readonly responseReadMs: number;
  /** Maximum time without a byte of a request body while the app waits for it. */
  readonly requestBodyIdleMs: number;
  /**
   * Maximum time without progress of a response to a client that has half-closed its connection; such a client may have disconnected. Also
   * the maximum time without a byte on an upgraded connection that one side has half-closed.
   */
  readonly halfClosedMs: number;
  /** Maximum time for a client to send the head of a request. */
  readonly requestHeadMs: number;
  /** Maximum idle time of a client's connection between requests. */
  readonly keepAliveMs: number;
  /**
   * Time for which the gate continues to serve requests after its pod begins to terminate. During this time the gate reports that it is not
   * ready.
   */
  readonly drainMs: number;
  /** Grace period for requests in flight when the sidecar closes. */
  readonly closeMs: number;
  /** Maximum time for which a request waits until the credits of its key are loaded. */
  readonly creditLoadMs: number;
  /** Interval at which the admission of each open connection or stream is checked again. */
  readonly recheckMs: number;
  readonly reportMs: number;
  /** Interval of pings on connections of the gRPC ext-auth endpoint. */
  readonly extAuthPingMs: number;
  /** Interval of checks for a changed certificate. */
  readonly certificateMs: number;
  /** Maximum time for which a request waits for a counter in the shared store. */
  readonly counterMs: number;
}

export interface Limits {
  readonly headBytesMax: number;
  /** Maximum body bytes of a rejected request that are read, so that the client can read the response. */
  readonly drainBytesMax: number;
  /** Maximum number of concurrent client connections. TLS handshakes count, upgraded connections do not. */
  readonly clientConnectionsMax: number;
  /** Maximum number of concurrent HTTP/2 client connections, which also count as client connections. */
  readonly clientHttp2ConnectionsMax: number;
  /** Maximum number of concurrent requests to the app. */
  readonly upstreamConnectionsMax: number;
  /** Maximum number of concurrent connections that are upgraded or being upgraded. */
  readonly upgradesMax: number;
  /**
   * Maximum share of each connection and request limit that one client address may use, above 0 and up to 1. The share is smaller while
   * other addresses use capacity. With 1, addresses are not limited.
   */
  readonly addressShare: number;
  /** Maximum Content-Length of a request body that is buffered completely before the request is sent to the app. */
  readonly bufferedBodyBytesMax: number;
  /** Maximum number of gateway connections per ext-auth endpoint. */
  readonly extAuthConnectionsMax: number;
  /** Maximum number of connections from all untrusted addresses together, per ext-auth endpoint. */
  readonly untrustedConnectionsMax: number;
  /** Maximum number of concurrent calls of the gRPC ext-auth endpoint. */
  readonly extAuthCallsMax: number;
  /**
   * Minimum rate of a request body in bytes per second while the app waits for it, measured over periods of `requestBodyIdleMs`; 0 means no
   * minimum.
   */
  readonly bodyBytesPerSecondMin: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = {
  connectMs: 5_000,
  headersMs: 300_000,
  bodyIdleMs: 300_000,
  eventsIdleMs: 3_600_000,
  // No idle timeout: upgraded protocols have their own pings, and TCP keepalive detects a lost peer.
  tunnelIdleMs: 0,
  // Time for a client to read a part of a response. The kernel reports free space only when a third of its buffer is free. This third can
  // be 1.3 MB, which a client that reads 11 KB per second frees within 120 s.
  responseReadMs: 120_000,
  // Timeout of a half-closed connection. Most responses take less than 10 s. If one takes longer, the client may have disconnected, and the
  // app would work in vain.
  halfClosedMs: 10_000,
  // Timeout of a request body. A client that has begun to send usually has the complete body ready, and a lossy network recovers in less
  // than 10 s.
  requestBodyIdleMs: 10_000,
  requestHeadMs: 30_000,
  // Idle timeout of client connections. It exceeds the usual timeout of load balancers, so that they close a connection first and never
  // send a request on a connection that the gate is closing.
  keepAliveMs: 75_000,
  drainMs: 0,
  closeMs: 2_000,
  creditLoadMs: 250,
  recheckMs: 10_000,
  reportMs: 5_000,
  extAuthPingMs: 60_000,
  certificateMs: 5_000,
  counterMs: 50,
};

export const DEFAULT_LIMITS: Limits = {
  headBytesMax: 16 * 1024,
  drainBytesMax: 1024 * 1024,
  // An idle connection takes about 6 KB, with HTTP/2 about 60 KB, so idle connections take at most half of the 320 MiB of an injected gate.
  clientConnectionsMax: 10_000,
  clientHttp2ConnectionsMax: 1_000,
  // Maximum concurrent requests to the app. An app that does not stream serves far fewer at a time. The number stays below the app's usual
  // accept backlog and file descriptor limit.
  upstreamConnectionsMax: 1_000,
  // Upgraded connections are mostly idle, so their limit is higher. Each connection takes two file descriptors and about 30 KB.
  upgradesMax: 10_000,
  // Maximum share of one address. With half, no client can lock out the others, and a proxy in front of the gate, whose clients all share
  // its address, still gets half of the capacity.
  addressShare: 0.5,
  // Most API request bodies are smaller than this limit. A request that waits for the rest of such a body keeps at most this many bytes in
  // memory, the size of about a dozen network packets.
  bufferedBodyBytesMax: 16 * 1024,
  // Gateways use far fewer connections than this limit.
  extAuthConnectionsMax: 5_000,
  untrustedConnectionsMax: 100,
  // A decision takes 1 to 2 ms, or up to a few hundred milliseconds while Redis is slow, so this number of concurrent calls suffices.
  extAuthCallsMax: 1_000,
  // Minimum rate of a request body. Even modems are faster; only intentionally slow clients are slower.
  bodyBytesPerSecondMin: 240,
};

/** Lower limits apply with TLS, because an idle TLS connection takes about 60 KB of memory, or 110 KB with HTTP/2. */
export const TLS_LIMITS: Pick<Limits, "clientConnectionsMax" | "clientHttp2ConnectionsMax"> = {
  clientConnectionsMax: 2_000,
  clientHttp2ConnectionsMax: 500,
};
/**
 * Lower limit with TLS, because a gateway connection then takes about 170 KB of memory. With this limit, all gateway connections together
 * take at most half of the 320 MiB of an injected gate.
 */
const EXT_AUTH_TLS_LIMITS: Pick<Limits, "extAuthConnectionsMax"> = { extAuthConnectionsMax: 1_000 };

/** Returns the limits. A limit that is not configured has its default value; some default values are lower with TLS. */
export const limitsOf = ({ tls, extAuth, limits }: Pick<SidecarConfig, "tls" | "extAuth" | "limits">): Limits => ({
  ...DEFAULT_LIMITS,
  ...(tls && TLS_LIMITS),
  ...(extAuth?.tls && EXT_AUTH_TLS_LIMITS),
  ...limits,
});
