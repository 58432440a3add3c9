import type { Logger } from "pino";
import type { GateProbes } from "../core/gates/probes.ts";
import type { IpRange } from "../core/verification/ip-address.ts";
import type { Certificate } from "../edge/follow-certificate.ts";
import type { Edge } from "../edge/open.ts";
import type { CacheSize } from "./cache-limits.ts";
import type { Snapshot } from "./snapshot/snapshot.ts";

export interface SidecarConfig {
  /** Access to the shared store. The caller opens and closes it. */
  readonly edge: Edge;
  readonly workspaceId: string;
  readonly policyId: string;
  /** `http://host:port` of the app; `undefined` if only ext-auth endpoints are open. */
  readonly upstream?: string | undefined;
  /** Protocol of the app. Default: `http1`. With `h2c` upgrades still use HTTP/1.1. */
  readonly upstreamProtocol?: UpstreamProtocol | undefined;
  /** Address for requests to the app. */
  readonly listen: Address;
  /** Returns the current certificate for TLS. Default: no TLS. */
  readonly tls?: (() => Certificate) | undefined;
  /** Endpoints where gateways request decisions. */
  readonly extAuth?: ExtAuthConfig | undefined;
  /** Address for probes and metrics. */
  readonly admin: Address;
  readonly podId: string;
  /** Token for `GET /drain` on the admin port, which reports that the pod terminates. Default: the path is not served. */
  readonly hookToken?: string | undefined;
  /** Probes of the app that kubelet requests at the admin port. */
  readonly probes?: GateProbes | undefined;
  readonly region: string;
  /** Snapshot on the pod's scratch disk. Default: none. */
  readonly snapshot?: Snapshot | undefined;
  readonly timeouts?: Partial<Timeouts>;
  readonly limits?: Partial<Limits>;
  readonly cache?: CacheSize | undefined;
  /** Base URL of error types: `{errorDocsUrl}/errors/<kind>`. */
  readonly errorDocsUrl: string;
  readonly logger: Logger;
  /** Internal, for the benchmark against a plain proxy: disables the checks. Not available as a flag or environment variable. */
  readonly checks?: false;
}

export type UpstreamProtocol = "http1" | "h2c";

export interface Address {
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
}

export interface ExtAuthConfig {
  /** Address of the HTTP ext-auth endpoint. */
  readonly authorize?: Address | undefined;
  /** Address of the gRPC ext-auth endpoint: Envoy's ext_authz and rate limit service. */
  readonly grpc?: Address | undefined;
  /** Addresses of trusted gateways, whose statements about a request and its client are used. Ignored where clients show certificates. */
  readonly trusted: readonly IpRange[];
  /**
   * Returns the current certificate for TLS on the ext-auth endpoints. With a `ca`, which cannot be added or removed later, clients must
   * show a certificate issued by it.
   */
  readonly tls?: (() => Certificate) | undefined;
}

export interface Timeouts {
  /** Maximum time to connect to the app, and maximum time to wait for a concurrency slot. */
  readonly connectMs: number;
  /** Maximum time from the end of the request to the head of the app's response. */
  readonly headersMs: number;
  /** Maximum time without a byte of the app's response while the client waits for it. */
  readonly bodyIdleMs: number;
  /** Replaces `bodyIdleMs` for server-sent events, which may be idle. */
  readonly eventsIdleMs: number;
  /** Maximum time without a byte in either direction of an upgraded connection; 0 means no limit. */
  readonly tunnelIdleMs: number;
  /** Maximum time for a client to read the written part of a response: at most 64 KiB. */
  readonly upstreamIdleMs: number;
  /** Maximum time without a byte of a request's body while the app waits for it. */
  readonly requestBodyIdleMs: number;
  /**
   * Maximum time without progress of a response to a client that has half-closed its connection, because the client may have disconnected.
   * Also the maximum time without a byte on an upgraded connection that one side has half-closed.
   */
  readonly halfClosedMs: number;
  /** Maximum time for a client to send the head of a request. */
  readonly requestHeadMs: number;
  /** Maximum idle time of a client's connection between requests. */
  readonly keepAliveMs: number;
  /** How long the gate continues to serve, unready, after its pod begins to terminate. */
  readonly drainMs: number;
  /** Grace period for requests in flight when the sidecar closes. */
  readonly closeMs: number;
  /** Maximum time that a request waits for the credits of its key to be loaded. */
  readonly creditLoadMs: number;
  /** Age and interval at which open connections and streams are checked again. */
  readonly recheckMs: number;
  readonly reportMs: number;
  /** Interval of pings on connections of the gRPC ext-auth endpoint. */
  readonly extAuthPingMs: number;
  /** Interval of checks for a changed certificate. */
  readonly certificateMs: number;
  /** Maximum time that a request waits for a counter in the store. */
  readonly counterMs: number;
}

export interface Limits {
  readonly headBytesMax: number;
  /** Maximum bytes of a rejected request's body that are read, so that the client can read the response. */
  readonly drainBytesMax: number;
  /** Maximum concurrent client connections, including TLS handshakes and without upgraded ones. */
  readonly clientConnectionsMax: number;
  /** Maximum concurrent HTTP/2 client connections, which also count as client connections. */
  readonly clientHttp2ConnectionsMax: number;
  /** Maximum concurrent requests to the app. */
  readonly upstreamConnectionsMax: number;
  /** Maximum concurrent connections that are upgraded or being upgraded. */
  readonly upgradesMax: number;
  /** Maximum share of each of these limits for one client address, above 0 and up to 1; less while others hold some. At 1 it is ignored. */
  readonly addressShare: number;
  /** Maximum Content-Length of a body that is buffered completely before the request is sent to the app. */
  readonly wholeBodyBytesMax: number;
  /** Maximum gateway connections at each ext-auth endpoint. */
  readonly extAuthConnectionsMax: number;
  /** Maximum connections from all untrusted addresses together at each ext-auth endpoint. */
  readonly untrustedConnectionsMax: number;
  /** Maximum concurrent calls of the gRPC ext-auth endpoint. */
  readonly extAuthCallsMax: number;
  /** Minimum bytes per second of a request's body while the app waits for it, over each `requestBodyIdleMs`. 0 means no minimum. */
  readonly bodyBytesPerSecondMin: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = {
  connectMs: 5_000,
  headersMs: 300_000,
  bodyIdleMs: 300_000,
  eventsIdleMs: 3_600_000,
  // Both sides have their own pings, and TCP keepalive detects a peer that vanished.
  tunnelIdleMs: 0,
  // The kernel reports free space only when a third of its buffer, up to 1.3 MB, is free: a reader of 11 KB per second is fast enough.
  upstreamIdleMs: 120_000,
  // Long enough for most responses; meanwhile the app may work for clients that have disconnected.
  halfClosedMs: 10_000,
  // A client that has begun to send usually has its body ready; networks that lose packets recover in less.
  requestBodyIdleMs: 10_000,
  requestHeadMs: 30_000,
  // Longer than the idle time of common load balancers, so that they close first, and no request arrives at a closed connection.
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
  // An idle connection takes about 6 KB, and 60 KB with HTTP/2: at most half of the 320 MiB of an injected gate.
  clientConnectionsMax: 10_000,
  clientHttp2ConnectionsMax: 1_000,
  // Far more than an app serves at a time, unless it streams, and few enough for its backlog and file descriptors.
  upstreamConnectionsMax: 1_000,
  // Upgraded connections are mostly idle, so the limit is higher; each costs two file descriptors and about 30 KB.
  upgradesMax: 10_000,
  // One client cannot exclude the others. A proxy before the gate, whose clients share its address, still gets half.
  addressShare: 0.5,
  // Covers nearly all API bodies, and limits the memory of waiting requests to one or two packets per connection.
  wholeBodyBytesMax: 16 * 1024,
  // Far more than gateways use.
  extAuthConnectionsMax: 5_000,
  untrustedConnectionsMax: 100,
  // A decision takes 1 to 2 ms, and at most a few hundred while Redis is slow.
  extAuthCallsMax: 1_000,
  // Slower than any modem; intentionally slow clients are slower still.
  bodyBytesPerSecondMin: 240,
};

/** Lower limits with TLS, because an idle connection takes about 60 KB of memory, and 110 KB with HTTP/2. */
export const TLS_LIMITS: Pick<Limits, "clientConnectionsMax" | "clientHttp2ConnectionsMax"> = {
  clientConnectionsMax: 2_000,
  clientHttp2ConnectionsMax: 500,
};
/** Lower limit with TLS, because a gateway connection takes about 170 KB of memory: half of the 320 MiB of an injected gate. */
const EXT_AUTH_TLS_LIMITS: Pick<Limits, "extAuthConnectionsMax"> = { extAuthConnectionsMax: 1_000 };

/** Returns the defaults, which TLS lowers, overridden by the configuration. */
export const limitsOf = ({ tls, extAuth, limits }: Pick<SidecarConfig, "tls" | "extAuth" | "limits">): Limits => ({
  ...DEFAULT_LIMITS,
  ...(tls && TLS_LIMITS),
  ...(extAuth?.tls && EXT_AUTH_TLS_LIMITS),
  ...limits,
});
