import { startIngest } from "../../api-server/start-ingest.ts";
import { openRedisEdge } from "../../edge/open.ts";
import { analyticsAddress } from "../analytics-store.ts";
import { defineCommand } from "../command.ts";
import { adminPort, analyticsStore, eventsMemory, listenHost, redisPrefix } from "../options.ts";
import { runService } from "../process.ts";
import { logRedisErrors } from "../redis-errors.ts";
import { databaseAddress, databaseOptions, redisAddress, redisOptions } from "../stores.ts";
import { parseMib, parsePort } from "../values.ts";

export const ingest = defineCommand({
  name: "ingest",
  description:
    "Replaces ingestion in api-servers that run with `--ingest off`. Any number of replicas may run. Migrates the database first.",
  options: {
    ...databaseOptions,
    ...analyticsStore,
    ...redisOptions,
    "redis-prefix": redisPrefix,
    "events-memory": eventsMemory,
    host: listenHost,
    "admin-port": { ...adminPort, default: "8003" },
  },
  run: (options, io) =>
    runService({ name: "ingest", env: io.env, deadlineMs: 10_000 }, async ({ log, closers }) => {
      const edge = await openRedisEdge({
        ...redisAddress(options, log),
        onError: logRedisErrors(log),
        prefix: options["redis-prefix"],
        clientName: "postern-ingest",
      });
      closers.add("redis", () => edge.close());
      const running = await startIngest({
        databaseUrl: databaseAddress(options, log),
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
