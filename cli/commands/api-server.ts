import type { GateCredentials } from "../../api-server/gates/credentials.ts";
import { start } from "../../api-server/start.ts";
import { openRedisEdge } from "../../edge/open.ts";
import { openCluster } from "../../operator/source/cluster.ts";
import { FILE, FOLLOWED_FILE, integer, PORT, SWITCH, text } from "../accepts.ts";
import { analyticsAddress } from "../analytics-store.ts";
import { followCertificateFiles } from "../certificate-files.ts";
import { defineCommand, type Io, splitList } from "../command.ts";
import { readEncryptionKeys } from "../encryption-keys.ts";
import { followed } from "../followed.ts";
import {
  adminPort,
  analyticsStore,
  docsUrl,
  encryptionKeysFile,
  eventsMemory,
  listenHost,
  redisPrefix,
  region,
  retention,
  v1,
  withoutSlash,
} from "../options.ts";
import { type Closers, runService } from "../process.ts";
import { logRedisErrors } from "../redis-errors.ts";
import { checkOwnRootKey, rootKeyFrom } from "../root-key.ts";
import { signInOf, signInOptions } from "../sign-in.ts";
import { databaseAddress, databaseOptions, redisAddress, redisOptions } from "../stores.ts";
import { reviewToken } from "../token-review.ts";
import { parseInteger, parseMib, parsePort, parseRetention, parseSwitch, parseV1 } from "../values.ts";

const CONNECTIONS = integer({ min: 1, max: 1_000_000, unit: "connections" });
const certificateFile = { type: "string", placeholder: "PATH" } as const;

export const apiServer = defineCommand({
  name: "api-server",
  description:
    "Migrates the database first, except with --migrate off. Any number of replicas may run; one of them is the relay.",
  options: {
    ...databaseOptions,
    migrate: {
      type: "string",
      placeholder: "on|off",
      help: "schema migration at startup; with `off` the server stays unready until `postern migrate` has run",
      default: "on",
      env: "POSTERN_MIGRATE",
      accepts: SWITCH,
    },
    ...analyticsStore,
    ...redisOptions,
    "redis-prefix": redisPrefix,
    "events-memory": eventsMemory,
    ingest: {
      type: "string",
      placeholder: "on|off",
      help: "ingestion of usage events; with `off` run `postern ingest` separately",
      default: "on",
      env: "POSTERN_INGEST",
      accepts: SWITCH,
    },
    ...retention,
    ...v1,
    host: listenHost,
    port: {
      type: "string",
      placeholder: "PORT",
      help: "port of the API",
      default: "8080",
      env: "POSTERN_API_PORT",
      accepts: PORT,
    },
    "admin-port": {
      ...adminPort,
      help: "separate port for probes, metrics and /docs; the API port then serves only the API and probes",
    },
    "tls-cert-file": {
      ...certificateFile,
      help: "TLS certificate of the API (PEM), reloaded on change",
      env: "POSTERN_TLS_CERT_FILE",
      accepts: FOLLOWED_FILE,
    },
    "tls-key-file": {
      ...certificateFile,
      help: "TLS private key (PEM), reloaded on change",
      env: "POSTERN_TLS_KEY_FILE",
      accepts: FOLLOWED_FILE,
    },
    dashboard: {
      type: "string",
      placeholder: "on|off",
      help: "dashboard at /dashboard/ on the API port",
      default: "on",
      env: "POSTERN_DASHBOARD",
      accepts: SWITCH,
    },
    "docs-url": {
      ...docsUrl,
      help: "base URL of error types: URL/errors/KIND; the server also serves these pages",
    },
    region,
    "trusted-proxies": {
      type: "string",
      placeholder: "IP,IP",
      help: "proxies whose X-Forwarded-For header is trusted",
      env: "POSTERN_TRUSTED_PROXIES",
      accepts: text("addresses", "separated by commas"),
    },
    "max-connections": {
      type: "string",
      placeholder: "COUNT",
      help: "maximum client connections; at the limit a new connection evicts the longest idle one, or is closed if all are busy",
      default: "1000",
      env: "POSTERN_MAX_CONNECTIONS",
      accepts: CONNECTIONS,
    },
    "root-key-file": {
      type: "string",
      placeholder: "PATH",
      help: "file with a root key with all permissions in the workspace `default`, instead of POSTERN_ROOT_KEY; reloaded on change",
      env: "POSTERN_ROOT_KEY_FILE",
      accepts: FOLLOWED_FILE,
    },
    "gate-credentials-cluster": {
      type: "string",
      placeholder: "NAME",
      help: "cluster whose gates get short-lived Redis users; its Kubernetes API reviews their tokens",
      env: "POSTERN_GATE_CREDENTIALS_CLUSTER",
      accepts: text("name"),
    },
    kubeconfig: {
      type: "string",
      placeholder: "FILE",
      help: "kubeconfig of the cluster in --gate-credentials-cluster (default: in-cluster)",
      env: "KUBECONFIG",
      accepts: FILE,
    },
    "encryption-keys-file": encryptionKeysFile,
    ...signInOptions,
  },
  run: (options, io) =>
    runService({ name: "api-server", env: io.env, deadlineMs: 10_000 }, async ({ log, closers }) => {
      const edge = await openRedisEdge({
        ...redisAddress(options, log),
        onError: logRedisErrors(log),
        prefix: options["redis-prefix"],
        clientName: "postern-api-server",
      });
      closers.add("redis", () => edge.close());
      const server = await start({
        databaseUrl: databaseAddress(options, log),
        migrates: parseSwitch("migrate", options.migrate),
        analytics: analyticsAddress(options),
        edge,
        host: options.host,
        port: parsePort("port", options.port),
        admin:
          options["admin-port"] === undefined
            ? undefined
            : { host: options.host, port: parsePort("admin-port", options["admin-port"]) },
        tls: followCertificateFiles(options, log),
        dashboard: parseSwitch("dashboard", options.dashboard),
        docsUrl: withoutSlash(options["docs-url"]),
        region: options.region,
        trustedProxies: splitList(options["trusted-proxies"]),
        maxConnections: parseInteger("max-connections", options["max-connections"], CONNECTIONS),
        rootKey: followed({
          name: "root-key",
          value: io.env.POSTERN_ROOT_KEY,
          file: options["root-key-file"],
          log,
          accept: (text) => checkOwnRootKey(text, rootKeyFrom(options)),
        }),
        eventsBytesMax: parseMib("events-memory", options["events-memory"]),
        ingest: parseSwitch("ingest", options.ingest),
        retentionDays: parseRetention(options),
        v1: parseV1(options),
        encryptionKeys: readEncryptionKeys(options["encryption-keys-file"], io.env),
        gates: await gatesOf(options, io, closers),
        signIn: signInOf(options, log),
        waitsForPostgres: true,
        logger: log,
      });
      closers.add("api-server", () => server.close());
      log.info({ url: server.url, adminUrl: server.adminUrl }, "ready");
    }),
});

async function gatesOf(
  {
    "gate-credentials-cluster": cluster,
    kubeconfig,
  }: Readonly<Record<"gate-credentials-cluster" | "kubeconfig", string | undefined>>,
  { env }: Io,
  closers: Closers,
): Promise<GateCredentials | undefined> {
  if (cluster === undefined) return undefined;
  const { client } = await openCluster(kubeconfig, env);
  closers.add("kubernetes", () => client.close());
  return { cluster, reviewToken: (token) => reviewToken(client, token) };
}
