import { start } from "../../api-server/start.ts";
import { openRedisEdge } from "../../edge/open.ts";
import { analyticsAddress } from "../analytics-store.ts";
import { defineCommand } from "../command.ts";
import { readEncryptionKeys } from "../encryption-keys.ts";
import {
  analyticsStore,
  databaseUrl,
  docsUrl,
  encryptionKeysFile,
  eventsMemory,
  eventsRedisUrl,
  listenHost,
  redisPrefix,
  redisUrl,
  region,
  required,
  retention,
  splitList,
  v1,
} from "../options.ts";
import { runService } from "../process.ts";
import { parseMib, parsePort, parseRetention, parseSwitch, parseV1 } from "../values.ts";

export const apiServer = defineCommand({
  name: "api-server",
  summary: "serve the HTTP API, project changes, ingest events",
  description:
    "Migrates the database to this version's schema first. Any number of replicas may run; one of them at a time is the relay.",
  options: {
    "database-url": databaseUrl,
    ...analyticsStore,
    "redis-url": redisUrl,
    "redis-prefix": redisPrefix,
    "events-redis-url": eventsRedisUrl,
    "events-memory": eventsMemory,
    ingest: {
      type: "string",
      placeholder: "on|off",
      help: "whether it stores usage events too; with off, run `postern ingest` beside it",
      default: "on",
      env: "POSTERN_INGEST",
    },
    ...retention,
    ...v1,
    host: listenHost,
    port: { type: "string", placeholder: "PORT", help: "port to listen on", default: "8080", env: "POSTERN_API_PORT" },
    "docs-url": { ...docsUrl, help: "base URL of error types; the server serves the pages itself" },
    region,
    "trusted-proxies": {
      type: "string",
      placeholder: "IP,IP",
      help: "proxies whose X-Forwarded-For is trusted",
      env: "POSTERN_TRUSTED_PROXIES",
    },
    "encryption-keys-file": encryptionKeysFile,
  },
  run: (options, io) =>
    runService({ name: "api-server", env: io.env, deadlineMs: 10_000 }, async ({ log, closers }) => {
      const edge = await openRedisEdge({
        url: required(options["redis-url"], "give --redis-url, or set REDIS_URL"),
        eventsUrl: options["events-redis-url"],
        prefix: options["redis-prefix"],
        clientName: "postern-api-server",
      });
      closers.add("redis", () => edge.close());
      const server = await start({
        databaseUrl: required(options["database-url"], "give --database-url, or set DATABASE_URL"),
        analytics: analyticsAddress(options),
        edge,
        host: options.host,
        port: parsePort("port", options.port),
        docsUrl: options["docs-url"],
        region: options.region,
        trustedProxies: splitList(options["trusted-proxies"]),
        rootKey: io.env.POSTERN_ROOT_KEY,
        eventsBytesMax: parseMib("events-memory", options["events-memory"]),
        ingest: parseSwitch("ingest", options.ingest),
        retentionDays: parseRetention(options),
        v1: parseV1(options),
        encryptionKeys: readEncryptionKeys(options["encryption-keys-file"], io.env),
        waitsForPostgres: true,
        logger: log,
      });
      closers.add("api-server", () => server.close());
      log.info({ url: server.url }, "ready");
    }),
});
