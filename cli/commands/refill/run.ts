import { createCreditService } from "../../../api-server/credits/postgres-credits.ts";
import { type RefillRun, runRefill } from "../../../api-server/credits/refill.ts";
import type { Administrator } from "../../../api-server/domain/administration/administrator.ts";
import { utcDate } from "../../../core/utc-date.ts";
import { openRedisEdge } from "../../../edge/open.ts";
import { withDatabase } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { refillInDev } from "../../dev-control.ts";
import { findRunningDev } from "../../dev-state.ts";
import { type Fields, objectShape } from "../../fields.ts";
import { database, json, redisPrefix, redisUrl, required } from "../../options.ts";
import { printOne } from "../../output.ts";
import { openLog } from "../../process.ts";
import { withProgress } from "../../progress.ts";
import { counted, parseInstant } from "../../values.ts";

interface Refill extends RefillRun {
  readonly date: string;
}

const refillFields: Fields<Refill> = [
  { name: "date", title: "date", value: (row) => row.date },
  { name: "refilled", title: "refilled", value: (row) => row.refilled },
  { name: "failed", title: "failed", value: (row) => row.failed },
];

export const refillRun = defineCommand({
  name: "refill run",
  description:
    "The api-servers do this daily. Safe to repeat: a key is refilled once per date. Requires the Redis of the api-servers, which has the credits; a running `postern dev` refills in its own process.",
  options: {
    at: {
      type: "string",
      placeholder: "TIME",
      help: "refill date in UTC, such as 2026-12-31 or 2026-12-31T18:00:00Z (default: today)",
    },
    "redis-url": redisUrl,
    "redis-prefix": redisPrefix,
    ...database,
    json,
  },
  response: objectShape(refillFields),
  run: async (options, io) => {
    const { at } = options;
    const nowMs = Date.now();
    const date = utcDate(at === undefined ? nowMs : parseInstant("at", at, { nowMs, spans: "ahead" }));
    const running = findRunningDev(options["data-dir"]);
    const isOfDev = running !== undefined && (options["database-url"] ?? running.databaseUrl) === running.databaseUrl;
    const done = await withProgress(io, options, { doing: "refilling", resources: "keys" }, (progress) =>
      isOfDev && running.control !== undefined
        ? refillInDev(running.control, date)
        : withDatabase(options, (administrator) =>
            refillInRedis(administrator, {
              date,
              url: required(options["redis-url"], "Redis stores the credits; set --redis-url or REDIS_URL"),
              prefix: options["redis-prefix"],
              log: openLog("refill", io.env),
              onBatch: ({ refilled, failed }) => progress.at({ done: refilled + failed }),
            }),
          ),
    );
    if (done === undefined) throw new Error("another process is running a refill; retry when it has finished");
    const row = { date, ...done };
    const sentence = `refilled ${counted(row.refilled, "key")} due by ${date}`;
    printOne(io, options, { fields: refillFields, row, sentence });
    if (row.failed > 0)
      throw new Error(`${counted(row.failed, "due key")} could not be refilled; see the log for the reasons`);
    return 0;
  },
});

async function refillInRedis(
  administrator: Administrator,
  {
    date,
    url,
    prefix,
    log,
    onBatch,
  }: {
    date: string;
    url: string;
    prefix: string;
    log: ReturnType<typeof openLog>;
    onBatch: (soFar: RefillRun) => void;
  },
): Promise<RefillRun | undefined> {
  const { db, nowMs } = administrator;
  const edge = await openRedisEdge({ url, prefix, clientName: "postern-cli" });
  try {
    // Checks the connection before any change. Otherwise a failure would appear only at the first due key.
    await edge.ping();
    const credits = createCreditService({ db, store: edge.credits, nowMs, log });
    return await runRefill({ ...administrator, credits, log }, { today: date, onBatch });
  } finally {
    await edge.close();
  }
}
