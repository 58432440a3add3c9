import { execFile } from "node:child_process";
import { promisify } from "node:util";
import pg from "pg";
import { type Section, timed } from "./section.ts";
import { seedKeys } from "./seed.ts";

/* Keys whose credits are refilled on the same day, while an api-server projects the changes. */

const run = promisify(execFile);

const KEYS = 100_000;

/** Corresponds to a million in ten minutes. */
const MAX_S = 60;

export const refill: Section = async (environment, { progress }) => {
  const stack = await environment.openSecond("refill", async ({ databaseUrl, workspaceId }) => {
    await seedKeys(databaseUrl, { workspaceId, count: KEYS });
    await seedCredits(databaseUrl);
    progress(`refill: ${KEYS} keys seeded`);
  });
  try {
    let refilled = 0;
    const tookMs = await timed(async () => {
      const env = { ...process.env, DATABASE_URL: stack.databaseUrl, REDIS_URL: stack.redisUrl };
      const { stdout } = await run(process.execPath, ["cli/main.ts", "refill", "run", "--json"], { env });
      refilled = (JSON.parse(stdout) as { refilled: number }).refilled;
    });
    if (refilled !== KEYS) throw new Error(`${refilled} of ${KEYS} keys were refilled`);
    const detail = `${Math.round((1000 * KEYS) / tookMs)} keys/s`;
    return [{ name: `${KEYS} keys refilled`, unit: "s", value: tookMs / 1000, max: MAX_S, detail }];
  } finally {
    await stack.close();
  }
};

/** All keys have a daily refill and were last refilled yesterday. */
async function seedCredits(databaseUrl: string): Promise<void> {
  const db = new pg.Client({ connectionString: databaseUrl });
  await db.connect();
  try {
    await db.query("set session_replication_role = replica");
    await db.query(
      `insert into key_credits (key_id, workspace_id, granted, refill_amount, last_refill_on)
       select k.id, k.workspace_id, 5, 10, (now() at time zone 'utc')::date - 1 from keys k`,
    );
    await db.query("analyze key_credits");
  } finally {
    await db.end();
  }
}
