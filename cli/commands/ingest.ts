import { startIngest } from "../../api-server/start-ingest.ts";
import { openRedisEdge } from "../../edge/open.ts";
import { analyticsAddress } from "../analytics-store.ts";
import { defineCommand } from "../command.ts";
import {
  adminPort,
  analyticsStore,
  databaseUrl,
  eventsMemory,
  eventsRedisUrl,
  listenHost,
  redisPrefix,
  redisUrl,
  required,
} from "../options.ts";
import { runService } from "../process.ts";
import { parseMib, parsePort } from "../values.ts";

export const ingest = defineCommand({
  name: "ingest",
  summary: "store usage events and count them, in a process of its own",
  description:
    "What api-servers do unless they run with `--ingest off`. Any number of replicas may run, also beside api-servers that ingest. Migrates the database to this version's schema first.",
  options: {
    "database-url": databaseUrl,
    ...analyticsStore,
    "redis-url": redisUrl,
    "redis-prefix": redisPrefix,
    "events-redis-url": eventsRedisUrl,
    "events-memory": eventsMemory,
    host: listenHost,
    "admin-port": { ...adminPort, default: "8003" },
  },
  run: (options, io) =>
    runService({ name: "ingest", env: io.env, deadlineMs: 10_000 }, async ({ log, closers }) => {
      const edge = await openRedisEdge({
        url: required(options["redis-url"], "give --redis-url, or set REDIS_URL"),
        eventsUrl: options["events-redis-url"],
        prefix: options["redis-prefix"],
        clientName: "postern-ingest",
      });
      closers.add("redis", () => edge.close());
      const running = await startIngest({
        databaseUrl: required(options["database-url"], "give --database-url, or set DATABASE_URL"),
        analytics: analyticsAddress(options),
        edge,
        admin: { host: options.host, port: parsePort("admin-port", options["admin-port"]) },
        eventsBytesMax: parseMib("events-memory", options["events-memory"]),
        logger: log,
      });
      closers.add("ingest", () => running.close());
      log.info({ adminUrl: running.adminUrl }, "ready");
    }),
});
