import { createHash, randomBytes } from "node:crypto";
import { parseArgs } from "node:util";
import pg from "pg";

/*
 * Inserts only the rows of a key: many writers, each on its own connection, repeatedly insert a key and its audit row in a
 * transaction, for a given time. Prints the transactions per second. Usage: … DATABASE_URL WORKSPACE API
 */

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { connections: { type: "string", default: "16" }, ms: { type: "string", default: "2000" } },
});
const [databaseUrl, workspaceId, apiId] = positionals;
const pool = new pg.Pool({ connectionString: databaseUrl, max: Number(values.connections) });
const actor = JSON.stringify({ type: "rootkey", id: "rk_bench", name: "bench" });
const endsAt = performance.now() + Number(values.ms);
let made = 0;

async function write(): Promise<void> {
  const db = await pool.connect();
  while (performance.now() < endsAt) {
    const id = `key_${randomBytes(12).toString("hex")}`;
    const hash = createHash("sha256").update(id).digest("base64");
    await db.query("begin");
    await db.query({
      name: "key",
      text: `insert into keys (id, workspace_id, api_id, hash, start, created_at) values ($1, $2, $3, $4, 'bare', $5)`,
      values: [id, workspaceId, apiId, hash, Date.now()],
    });
    await db.query({
      name: "audit",
      text: `insert into audit_log (id, workspace_id, time, event, description, actor, targets)
             values ($1, $2, $3, 'key.create', $4, $5::jsonb, $6::jsonb)`,
      values: [
        `log_${randomBytes(12).toString("hex")}`,
        workspaceId,
        Date.now(),
        `Created key ${id} in API ${apiId}`,
        actor,
        JSON.stringify([
          { type: "key", id },
          { type: "api", id: apiId, name: "bench" },
        ]),
      ],
    });
    await db.query("commit");
    made += 1;
  }
  db.release();
}

const startedAt = performance.now();
await Promise.all(Array.from({ length: Number(values.connections) }, write));
console.log(made / ((performance.now() - startedAt) / 1000));
await pool.end();
