import type { Logger } from "pino";
import type { GateProbes } from "../core/gates/probes.ts";
import type { IpRange } from "../core/verification/ip-address.ts";
import type { Certificate } from "../edge/follow-certificate.ts";
import type { Edge } from "../edge/open.ts";
import type { CacheSize } from "./cache-limits.ts";
import type { Snapshot } from "./snapshot/snapshot.ts";

export interface SidecarConfig {
  /** Access to everything shared. The caller opens and closes it. */
  readonly edge: Edge;
  readonly workspaceId: string;
  readonly policyId: string;
  /** `http://host:port` of the app; undefined when only doors are open. */
  readonly upstream?: string | undefined;
  /** What the app speaks; `http1` when left out. With `h2c` upgrades still go by HTTP/1.1. */
  readonly upstreamProtocol?: UpstreamProtocol | undefined;
  /** For requests to the app. */
  readonly listen: Address;
  /** Requests come by TLS with the certificate of now; without TLS when left out. */
  readonly tls?: (() => Certificate) | undefined;
  /** Where gateways ask for decisions. */
  readonly doors?: DoorsConfig | undefined;
  /** For probes and metrics only. */
  readonly admin: Address;
  readonly podId: string;
  /** Who may tell the gate that its pod ends, by `GET /pod-ends` on the admin port; no one when left out. */
  readonly hookToken?: string | undefined;
  /** Probes of the app that kubelet asks for at the admin port. */
  readonly probes?: GateProbes | undefined;
  readonly region: string;
  /** What is kept on the pod's scratch disk; nothing when left out. */
  readonly snapshot?: Snapshot | undefined;
  readonly timeouts?: Partial<Timeouts>;
  readonly limits?: Partial<Limits>;
  readonly cache?: CacheSize | undefined;
  /** The base URL of error types: `{errorDocsUrl}/errors/<kind>`. */
  readonly errorDocsUrl: string;
  readonly logger: Logger;
  /** Internal, for the benchmark against a plain proxy: disables the checks. No flag or environment variable sets it. */
  readonly checks?: false;
}

export type UpstreamProtocol = "http1" | "h2c";

export interface Address {
  readonly host: string;
  /** 0 lets the kernel choose. */
  readonly port: number;
}

export interface DoorsConfig {
  /** Of the HTTP door. */
  readonly authorize?: Address | undefined;
  /** Of the gRPC door: Envoy's ext_authz and rate limit service. */
  readonly grpc?: Address | undefined;
  /**
   * From where the doors may be asked: what is said there of a request and its client is believed. Not looked at where clients show
   * certificates.
   */
  readonly trusted: readonly IpRange[];
  /** The doors are asked by TLS, with the certificate of now; with a `ca`, which is there from the start or never, only by clients that show a certificate of it. */
  readonly tls?: (() => Certificate) | undefined;
}

export interface Timeouts {
  /** To connect to the app; and to wait for a place when all are taken. */
  readonly connectMs: number;
  /** From the end of the request to the head of the app's response. */
  readonly headersMs: number;
  /** Without a byte of the app's response while the client waits for it. */
  readonly bodyIdleMs: number;
  /** The same of a stream of server-sent events, which may have nothing to tell for long. */
  readonly eventsIdleMs: number;
  /** Without a byte in either direction of an upgraded connection; 0 means no limit. */
  readonly tunnelIdleMs: number;
  /** For a client to take what was written of a response: at most 64 KiB. */
  readonly answerIdleMs: number;
  /** Without a byte of a request's body while the app waits for it. */
  readonly requestBodyIdleMs: number;
  /**
   * For a response to a client that has ended its own direction, while no byte of it can be sent: the client may be gone. And of an upgraded connection
   * that one side has ended, without a byte of the other.
   */
  readonly halfClosedMs: number;
  /** For a client to send the head of a request. */
  readonly requestHeadMs: number;
  /** How long a client's connection may be idle between requests. */
  readonly keepAliveMs: number;
  /** How long the gate goes on serving, unready, from when its pod begins to end. */
  readonly drainMs: number;
  /** How long requests in flight may still take when the sidecar closes. */
  readonly closeMs: number;
  /** How long a request waits for the credits of its key to be loaded. */
  readonly creditLoadMs: number;
  /** After which time, and at which interval from then on, open connections and streams are checked again. */
  readonly recheckMs: number;
  readonly reportMs: number;
  /** How often a connection of the gRPC door must show that it is there. */
  readonly doorPingMs: number;
  /** How often is looked for another certificate. */
  readonly certificateMs: number;
  /** A slow store is not unreachable, but a request does not wait for it longer than this. */
  readonly counterMs: number;
}

export interface Limits {
  readonly headBytesMax: number;
  /** How much of the body of a refused request is read, so that the client can read the response. */
  readonly drainBytesMax: number;
  /** Connections of clients at once, with those whose TLS handshake is not over, and without upgraded ones. */
  readonly clientConnectionsMax: number;
  /** Of them, those of HTTP/2. */
  readonly clientHttp2ConnectionsMax: number;
  /** Requests that the app has at once. */
  readonly upstreamConnectionsMax: number;
  /** Connections that are upgraded, or being upgraded, at once. */
  readonly upgradesMax: number;
  /** The part of each of these that one client address alone may hold, above 0 and up to 1; less while others hold some. At 1 it is ignored. */
  readonly addressShare: number;
  /** A request with a body of at most this Content-Length is sent to the app only when its whole body has arrived. */
  readonly wholeBodyBytesMax: number;
  /** Connections of gateways at each door. */
  readonly doorConnectionsMax: number;
  /** Connections from all other addresses at each door. */
  readonly doorStrangersMax: number;
  /** Calls of the gRPC door at once. */
  readonly doorCallsMax: number;
  /** Bytes per second of a request's body while the app waits for it, over each `requestBodyIdleMs`. 0 means no minimum. */
  readonly bodyBytesPerSecondMin: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = {
  connectMs: 5_000,
  headersMs: 300_000,
  bodyIdleMs: 300_000,
  eventsIdleMs: 3_600_000,
  // Both sides have pings of their own, and TCP's probes find a peer that vanished.
  tunnelIdleMs: 0,
  // The kernel reports room only when a third of its buffer, up to 1.3 MB, is free: a reader of 11 KB per second is fast enough.
  answerIdleMs: 120_000,
  // Long enough for most responses; meanwhile the app may work for clients that are gone.
  halfClosedMs: 10_000,
  // A client that has begun has its body ready, unless it makes it while sending; networks that lose packets recover in less.
  requestBodyIdleMs: 10_000,
  requestHeadMs: 30_000,
  // Longer than the idle time of common load balancers, so that they close first, and no request arrives at a closed connection.
  keepAliveMs: 75_000,
  drainMs: 0,
  closeMs: 2_000,
  creditLoadMs: 250,
  recheckMs: 10_000,
  reportMs: 5_000,
  doorPingMs: 60_000,
  certificateMs: 5_000,
  counterMs: 50,
};

export const DEFAULT_LIMITS: Limits = {
  headBytesMax: 16 * 1024,
  drainBytesMax: 1024 * 1024,
  // Some 6 KB and 60 KB each when they are idle, of the 320 MiB of an injected gate: half of that at most.
  clientConnectionsMax: 10_000,
  clientHttp2ConnectionsMax: 1_000,
  // Far more than an app serves at a time, unless it streams, and few enough for its backlog and file descriptors.
  upstreamConnectionsMax: 1_000,
  // Mostly idle, so there may be more of them; each costs two file descriptors and some 30 KB.
  upgradesMax: 10_000,
  // One client cannot exclude the others, and a proxy before the gate, whose clients look like one, still gets half.
  addressShare: 0.5,
  // Covers nearly all API bodies, and limits what waiting requests keep to a packet or two per connection.
  wholeBodyBytesMax: 16 * 1024,
  // Far more than gateways keep.
  doorConnectionsMax: 5_000,
  doorStrangersMax: 100,
  // A decision takes a millisecond or two, and at most some hundred while Redis is slow.
  doorCallsMax: 1_000,
  // Slower than any modem; an intentionally slow client is slower still.
  bodyBytesPerSecondMin: 240,
};

/** With TLS, where an idle connection takes some 60 KB of memory, and one of HTTP/2 110 KB. */
export const TLS_LIMITS: Pick<Limits, "clientConnectionsMax" | "clientHttp2ConnectionsMax"> = {
  clientConnectionsMax: 2_000,
  clientHttp2ConnectionsMax: 500,
};
