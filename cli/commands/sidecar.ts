import { hostname } from "node:os";
import type { Logger } from "pino";
import { GateProbes } from "../../core/gates/probes.ts";
import { ID_PREFIXES } from "../../core/ids.ts";
import { formatDuration } from "../../core/manifests/from-store/format-duration.ts";
import { managerOfPolicy } from "../../core/manifests/manager.ts";
import { parseNamedPolicy, policyIdOf } from "../../core/policies/policy-id.ts";
import { openRedisEdge } from "../../edge/open.ts";
import {
  DEFAULT_LIMITS,
  DEFAULT_TIMEOUTS,
  type ExtAuthConfig,
  type Limits,
  TLS_LIMITS,
  type UpstreamProtocol,
} from "../../sidecar/config.ts";
import { RESTORED_WAIT_MS } from "../../sidecar/gate-state.ts";
import { openSnapshot, SECRET_CHARACTERS_MIN, type Snapshot } from "../../sidecar/snapshot/snapshot.ts";
import { startSidecar } from "../../sidecar/start.ts";
import { duration, FOLDER, FOLLOWED_FILE, HTTP_URL, integer, LISTEN, oneOf, PORT, text } from "../accepts.ts";
import { followCertificateFiles, followExtAuthCertificate } from "../certificate-files.ts";
import { type Accepts, defineCommand, UsageError } from "../command.ts";
import { surviveStrayErrors } from "../last-resort.ts";
import { adminPort, docsUrl, listenHost, redisPrefix, region, withoutSlash } from "../options.ts";
import { runService } from "../process.ts";
import { logRedisErrors } from "../redis-errors.ts";
import { redisAddress, redisOptions } from "../stores.ts";
import {
  parseBlocks,
  parseChoice,
  parseDurationOption,
  parseHttpUrl,
  parseInteger,
  parseListen,
  parsePort,
} from "../values.ts";
import { cacheOptions, parseCache } from "./cache-options.ts";
import { addressWith, credentialOptions, credentialsOf } from "./credential-options.ts";
import { parseWaits, waitOptions } from "./wait-options.ts";

const PROTOCOL = oneOf("http1", "h2c");
const PLACES = integer({ min: 1, max: 1_000_000, unit: "requests" });
const CONNECTIONS = integer({ min: 1, max: 1_000_000, unit: "connections" });
const SHARE = integer({ min: 1, max: 100, unit: "percent" });
const BODY_TIMEOUT = duration({ minMs: 1_000, maxMs: 86_400_000 });
const BODY_RATE = integer({ min: 0, max: 1_000_000, unit: "bytes per second" });
const DRAIN = duration({ minMs: 0, maxMs: 3_600_000 });
const BLOCKS: Accepts = {
  ...text("addresses and CIDR blocks", "such as 10.0.0.0/8, separated by commas"),
  check: (option, blocks) => void parseBlocks(option, blocks),
};

export const sidecar = defineCommand({
  name: "sidecar",
  description:
    "Starts even if Redis is unavailable or its policy does not exist; it is unready and responds with 503 until it has the policy. Drains at SIGTERM, and for a preStop hook at `GET /drain` on the admin port with the header Postern-Hook-Token, if POSTERN_HOOK_TOKEN is set.",
  options: {
    ...redisOptions,
    ...credentialOptions,
    "redis-prefix": redisPrefix,
    workspace: {
      type: "string",
      placeholder: "ID",
      help: "workspace id of the policy",
      required: true,
      env: "POSTERN_WORKSPACE",
      accepts: text("id"),
    },
    policy: {
      type: "string",
      placeholder: "POLICY",
      help: "policy to enforce: CLUSTER/NAMESPACE/NAME of an ApiKeyPolicy (need not exist yet), or its id",
      required: true,
      env: "POSTERN_POLICY",
      accepts: text("name"),
    },
    upstream: {
      type: "string",
      placeholder: "URL",
      help: "URL of the app; optional with --ext-auth-http-listen or --ext-auth-grpc-listen",
      env: "POSTERN_UPSTREAM",
      accepts: HTTP_URL,
    },
    "upstream-protocol": {
      type: "string",
      placeholder: "PROTOCOL",
      help: "protocol of the app: http1, or h2c (HTTP/2 without TLS, for gRPC; upgrades use HTTP/1.1)",
      default: "http1",
      env: "POSTERN_UPSTREAM_PROTOCOL",
      accepts: PROTOCOL,
    },
    host: listenHost,
    port: {
      type: "string",
      placeholder: "PORT",
      help: "port for requests to the app",
      default: "8000",
      env: "POSTERN_SIDECAR_PORT",
      accepts: PORT,
    },
    "tls-cert-file": {
      type: "string",
      placeholder: "PATH",
      help: "TLS certificate (PEM) for HTTP/2 and HTTP/1.1, reloaded on change",
      env: "POSTERN_TLS_CERT_FILE",
      accepts: FOLLOWED_FILE,
    },
    "tls-key-file": {
      type: "string",
      placeholder: "PATH",
      help: "TLS private key (PEM), reloaded on change",
      env: "POSTERN_TLS_KEY_FILE",
      accepts: FOLLOWED_FILE,
    },
    "ext-auth-http-listen": {
      type: "string",
      placeholder: "[HOST:]PORT",
      help: "address of the HTTP ext-auth endpoint for nginx, HAProxy, Traefik, Caddy, Apache and Envoy (default: disabled)",
      env: "POSTERN_EXT_AUTH_HTTP_LISTEN",
      accepts: LISTEN,
    },
    "ext-auth-grpc-listen": {
      type: "string",
      placeholder: "[HOST:]PORT",
      help: "address of the gRPC ext-auth endpoint for Envoy's ext_authz and rate limit services (default: disabled)",
      env: "POSTERN_EXT_AUTH_GRPC_LISTEN",
      accepts: LISTEN,
    },
    "trusted-gateways": {
      type: "string",
      placeholder: "BLOCKS",
      help: "addresses and CIDR blocks of trusted gateways, which report a request and its client",
      default: "127.0.0.0/8,::1",
      env: "POSTERN_TRUSTED_GATEWAYS",
      accepts: BLOCKS,
    },
    "ext-auth-tls-cert-file": {
      type: "string",
      placeholder: "PATH",
      help: "TLS certificate (PEM) of both ext-auth endpoints, reloaded on change",
      env: "POSTERN_EXT_AUTH_TLS_CERT_FILE",
      accepts: FOLLOWED_FILE,
    },
    "ext-auth-tls-key-file": {
      type: "string",
      placeholder: "PATH",
      help: "TLS private key (PEM), reloaded on change",
      env: "POSTERN_EXT_AUTH_TLS_KEY_FILE",
      accepts: FOLLOWED_FILE,
    },
    "ext-auth-client-ca-file": {
      type: "string",
      placeholder: "PATH",
      help: "CA bundle (PEM) for gateway client certificates, reloaded on change; requires mTLS and replaces --trusted-gateways",
      env: "POSTERN_EXT_AUTH_CLIENT_CA_FILE",
      accepts: FOLLOWED_FILE,
    },
    "admin-port": { ...adminPort, default: "8001" },
    "pod-id": {
      type: "string",
      placeholder: "ID",
      help: "pod name in reports (default: host name)",
      env: "POSTERN_POD",
      accepts: text("name"),
    },
    "snapshot-dir": {
      type: "string",
      placeholder: "PATH",
      help: "this pod's snapshot directory, to serve cached keys after a restart while Redis is unavailable; requires POSTERN_SNAPSHOT_KEY",
      env: "POSTERN_SNAPSHOT_DIR",
      accepts: FOLDER,
    },
    "max-connections": {
      type: "string",
      placeholder: "COUNT",
      help: `maximum client connections, excluding upgraded ones; at the limit the longest idle one is evicted, or the new one rejected (default ${DEFAULT_LIMITS.clientConnectionsMax}, ${TLS_LIMITS.clientConnectionsMax} with TLS)`,
      env: "POSTERN_MAX_CONNECTIONS",
      accepts: CONNECTIONS,
    },
    "max-http2-connections": {
      type: "string",
      placeholder: "COUNT",
      help: `maximum HTTP/2 client connections (default ${DEFAULT_LIMITS.clientHttp2ConnectionsMax}, ${TLS_LIMITS.clientHttp2ConnectionsMax} with TLS)`,
      env: "POSTERN_MAX_HTTP2_CONNECTIONS",
      accepts: CONNECTIONS,
    },
    "max-upstream-requests": {
      type: "string",
      placeholder: "COUNT",
      help: "maximum concurrent requests to the app; others wait briefly and then get 503",
      default: String(DEFAULT_LIMITS.upstreamConnectionsMax),
      env: "POSTERN_MAX_UPSTREAM_REQUESTS",
      accepts: PLACES,
    },
    "max-upgraded-connections": {
      type: "string",
      placeholder: "COUNT",
      help: "maximum upgraded connections (WebSocket); others get 503",
      default: String(DEFAULT_LIMITS.upgradesMax),
      env: "POSTERN_MAX_UPGRADED_CONNECTIONS",
      accepts: PLACES,
    },
    "max-client-share": {
      type: "string",
      placeholder: "PERCENT",
      help: "maximum share of each connection or request limit for one client address; use 100 if all clients share one proxy",
      default: String(100 * DEFAULT_LIMITS.addressShare),
      env: "POSTERN_MAX_CLIENT_SHARE",
      accepts: SHARE,
    },
    "client-body-timeout": {
      type: "string",
      placeholder: "DURATION",
      help: "maximum pause in a request body while the app waits; the client then gets 408",
      default: formatDuration(DEFAULT_TIMEOUTS.requestBodyIdleMs),
      env: "POSTERN_CLIENT_BODY_TIMEOUT",
      accepts: BODY_TIMEOUT,
    },
    "client-body-min-rate": {
      type: "string",
      placeholder: "BYTES",
      help: "minimum bytes per second of a request body while the app waits for it; 0 disables the limit",
      default: String(DEFAULT_LIMITS.bodyBytesPerSecondMin),
      env: "POSTERN_CLIENT_BODY_MIN_RATE",
      accepts: BODY_RATE,
    },
    ...cacheOptions,
    ...waitOptions,
    // The default is one second less than the preStop sleep of the app, so that the gate closes idle connections while the app still runs.
    "drain-timeout": {
      type: "string",
      placeholder: "DURATION",
      help: "time to keep serving, unready, after termination begins; each response then closes its connection",
      default: "4s",
      env: "POSTERN_DRAIN_TIMEOUT",
      accepts: DRAIN,
    },
    "docs-url": docsUrl,
    region,
  },
  run: (options, io) => {
    const upstream = options.upstream === undefined ? undefined : parseHttpUrl("upstream", options.upstream);
    const upstreamProtocol = parseUpstreamProtocol(options["upstream-protocol"], upstream);
    const withExtAuth = readExtAuth(options);
    if (upstream === undefined && withExtAuth === undefined)
      throw new UsageError("--upstream, --ext-auth-http-listen or --ext-auth-grpc-listen is required");
    const policyId = policyIdFrom(options.policy, options.workspace);
    const drainMs = parseDurationOption("drain-timeout", options["drain-timeout"], DRAIN);
    return runService({ name: "sidecar", env: io.env, deadlineMs: drainMs + 10_000 }, async ({ log, closers }) => {
      const credentials = credentialsOf(options, log);
      closers.add("credentials", async () => credentials?.close());
      const snapshot = await snapshotOf(options, policyId, { env: io.env, logger: log });
      const edge = await openRedisEdge({
        connectWaitMs: snapshot?.restored && RESTORED_WAIT_MS,
        ...addressWith(credentials, redisAddress(options, log), logRedisErrors(log)),
        prefix: options["redis-prefix"],
        clientName: "postern-sidecar",
      });
      closers.add("redis", () => edge.close());
      const gate = await startSidecar({
        edge,
        workspaceId: options.workspace,
        policyId,
        snapshot,
        upstream,
        upstreamProtocol,
        listen: { host: options.host, port: parsePort("port", options.port) },
        tls: followCertificateFiles(options, log),
        extAuth: withExtAuth && { ...withExtAuth, tls: followExtAuthCertificate(options, log) },
        admin: { host: options.host, port: parsePort("admin-port", options["admin-port"]) },
        timeouts: {
          drainMs,
          ...parseWaits(options),
          requestBodyIdleMs: parseDurationOption("client-body-timeout", options["client-body-timeout"], BODY_TIMEOUT),
        },
        limits: {
          ...parseConnections(options),
          upstreamConnectionsMax: parseInteger("max-upstream-requests", options["max-upstream-requests"], PLACES),
          upgradesMax: parseInteger("max-upgraded-connections", options["max-upgraded-connections"], PLACES),
          addressShare: parseInteger("max-client-share", options["max-client-share"], SHARE) / 100,
          bodyBytesPerSecondMin: parseInteger("client-body-min-rate", options["client-body-min-rate"], BODY_RATE),
        },
        cache: parseCache(options),
        podId: options["pod-id"] ?? hostname(),
        // The token comes from the environment, because every user of the machine can read command lines.
        hookToken: io.env.POSTERN_HOOK_TOKEN,
        // The operator sets this variable when it injects the gate.
        probes: parseProbes(io.env.POSTERN_PROBES),
        region: options.region,
        errorDocsUrl: withoutSlash(options["docs-url"]),
        // Logs the name of the policy rather than its id, which is a hash, so that a misspelled name is visible.
        logger: log.child({ policy: options.policy }),
      });
      closers.add("sidecar", () => gate.close());
      // Handles uncaught errors only after startup, because an error during startup must end the process.
      surviveStrayErrors({ log, onInternalError: gate.logStrayError });
      const { url, authorizeUrl, grpcUrl, adminUrl } = gate;
      log.info({ url, authorizeUrl, grpcUrl, adminUrl }, "listening");
    });
  },
});

/** Returns only the limits that are set by options, because the default limits depend on TLS. */
function parseConnections(
  options: Readonly<Record<"max-connections" | "max-http2-connections", string | undefined>>,
): Partial<Limits> {
  const { "max-connections": all, "max-http2-connections": http2 } = options;
  return {
    ...(all === undefined ? {} : { clientConnectionsMax: parseInteger("max-connections", all, CONNECTIONS) }),
    ...(http2 === undefined
      ? {}
      : { clientHttp2ConnectionsMax: parseInteger("max-http2-connections", http2, CONNECTIONS) }),
  };
}

function parseUpstreamProtocol(text: string, upstream: string | undefined): UpstreamProtocol {
  const protocol = parseChoice("upstream-protocol", text, PROTOCOL.words);
  if (protocol === "h2c" && upstream?.startsWith("https:"))
    throw new UsageError("--upstream-protocol h2c requires an --upstream without TLS: http://…");
  return protocol;
}

type ExtAuthOptions = Readonly<
  Record<"host" | "trusted-gateways", string> &
    Record<"ext-auth-http-listen" | "ext-auth-grpc-listen", string | undefined>
>;

/** Returns the configuration of the ext-auth endpoints; `undefined` if none is configured. */
function readExtAuth(options: ExtAuthOptions): ExtAuthConfig | undefined {
  const {
    host,
    "ext-auth-http-listen": authorize,
    "ext-auth-grpc-listen": grpc,
    "trusted-gateways": trusted,
  } = options;
  if (authorize === undefined && grpc === undefined) return undefined;
  return {
    authorize: authorize === undefined ? undefined : parseListen("ext-auth-http-listen", authorize, host),
    grpc: grpc === undefined ? undefined : parseListen("ext-auth-grpc-listen", grpc, host),
    trusted: parseBlocks("trusted-gateways", trusted),
  };
}

/** Returns the snapshot settings. The secret comes from the environment, because every user of the machine can read command lines. */
function snapshotOf(
  options: { readonly "snapshot-dir": string | undefined; readonly "redis-prefix": string; readonly workspace: string },
  policyId: string,
  { env, logger }: { env: NodeJS.ProcessEnv; logger: Logger },
): Promise<Snapshot> | undefined {
  const { "snapshot-dir": directory, "redis-prefix": prefix, workspace: workspaceId } = options;
  if (directory === undefined) return undefined;
  const { POSTERN_SNAPSHOT_KEY: secret = "" } = env;
  if (secret.length < SECRET_CHARACTERS_MIN) {
    throw new UsageError(
      `--snapshot-dir requires POSTERN_SNAPSHOT_KEY with at least ${SECRET_CHARACTERS_MIN} characters`,
    );
  }
  return openSnapshot({ directory, secret, workspaceId, policyId, prefix, logger });
}

/**
 * Returns the id of the policy for a name or an id. A policy without a manifest is referenced by its id. Throws for any other text, because
 * the gate would wait for the policy indefinitely.
 */
function policyIdFrom(policy: string, workspaceId: string): string {
  const named = parseNamedPolicy(policy);
  if (named !== undefined) return policyIdOf({ workspaceId, manager: managerOfPolicy(named) });
  if (POLICY_ID.test(policy)) return policy;
  throw new UsageError(
    `invalid value ${JSON.stringify(policy)} for --policy: must be CLUSTER/NAMESPACE/NAME of an ApiKeyPolicy, or an id that begins with ${ID_PREFIXES.policy}_`,
  );
}

/** Parses the probes. Throws `UsageError` for an invalid probe. If the gate ignored it, the pod would stay unready without an error. */
function parseProbes(text: string | undefined): GateProbes | undefined {
  if (text === undefined) return undefined;
  try {
    return GateProbes.parse(JSON.parse(text));
  } catch (error) {
    throw new UsageError(`POSTERN_PROBES is not a list of probes: ${error instanceof Error ? error.message : error}`);
  }
}

const POLICY_ID = new RegExp(`^${ID_PREFIXES.policy}_[A-Za-z0-9_-]{1,64}$`);
