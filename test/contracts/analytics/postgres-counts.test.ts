import { pino } from "pino";
import { Registry } from "prom-client";
import { PostgresAnalytics } from "../../../analytics/postgres/store.ts";
import { createPool } from "../../../postgres/pool.ts";
import { createTestDatabase } from "../../harness/postgres.ts";
import { describeCounts } from "./counts.ts";

describeCounts("Postgres", async ({ nowMs }) => {
  const database = await createTestDatabase();
  const db = createPool(database.url, { connectionsMax: 3 });
  const store = new PostgresAnalytics({ db, nowMs, log: pino({ level: "silent" }), metrics: new Registry() });
  return {
    store,
    close: async () => {
      await store.close();
      await db.end();
      await database.drop();
    },
  };
});
