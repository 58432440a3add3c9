import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { startEmbeddedPostgres } from "./cli/embedded-postgres.ts";
import { seedKeys } from "./test/load/seed.ts";
import { openStack } from "./test/load/stack.ts";
const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "postern-figures-"));
const postgres = await startEmbeddedPostgres({ dataDir: join(folder, "postgres") });
const what = process.argv[2];
const COUNT = Number(process.argv[3] ?? 1_000_000);
let apiId = "";
const stack = await openStack(postgres.url, async ({ databaseUrl, workspaceId }) => {
  apiId = await seedKeys(databaseUrl, { workspaceId, count: what === "refill" ? COUNT : 20_000 });
  if (what === "refill") {
    const db = new pg.Client({ connectionString: databaseUrl }); await db.connect();
    await db.query("set session_replication_role = replica");
    await db.query("insert into key_credits (key_id, workspace_id, granted, refill_amount, last_refill_on) select id, workspace_id, 5, 10, current_date - 1 from keys");
    await db.query("analyze key_credits"); await db.end();
  }
});
console.log("ready", new Date().toISOString());
if (what === "commits") {
  await stack.apiServer.stop();
  const admin = new pg.Client({ connectionString: postgres.url }); await admin.connect();
  await admin.query("create function figure_notify() returns trigger language plpgsql as $$ begin perform pg_notify('postern_outbox', ''); return null; end $$");
  const ids = (await admin.query("select id from keys limit 20000")).rows.map((r) => r.id);
  const clients = await Promise.all(Array.from({ length: 16 }, async () => { const c = new pg.Client({ connectionString: postgres.url }); await c.connect(); return c; }));
  const rate = async (ms: number) => {
    let n = 0; const until = performance.now() + ms;
    await Promise.all(clients.map(async (c, i) => { for (let j = i; performance.now() < until; j += 16) { await c.query({ name: "u", text: "update keys set enabled = not enabled where id = $1", values: [ids[j % ids.length]] }); n++; } }));
    return Math.round(n / ms * 1000);
  };
  await rate(1000);
  for (let i = 0; i < 4; i++) {
    const without = await rate(4000);
    await admin.query("create trigger figure_notify after insert on outbox for each statement execute function figure_notify()");
    const withNotify = await rate(4000);
    await admin.query("drop trigger figure_notify on outbox"); await admin.query("truncate outbox");
    console.log({ without, withNotify });
  }
  for (const c of clients) await c.end(); await admin.end();
} else {
  const at = performance.now();
  const env = { ...process.env, DATABASE_URL: stack.databaseUrl, REDIS_URL: stack.redisUrl };
  const t = setInterval(() => console.log(Math.round((performance.now() - at) / 1000), "s"), 30_000);
  const { stdout } = await run(process.execPath, ["cli/main.ts", "refill", "run", "--json"], { env, maxBuffer: 1e8 });
  clearInterval(t);
  console.log(stdout.trim(), "took s", Math.round((performance.now() - at) / 1000));
}
await stack.close(); await postgres.stop(); process.exit(0);
