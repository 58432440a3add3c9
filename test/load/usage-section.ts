import pg from "pg";
import { median } from "./measure.ts";
import { type Figure, type Section, timed } from "./section.ts";
import { seedUsage } from "./seed-usage.ts";
import type { Stack } from "./stack.ts";

/* Questions about the usage of 10,000 keys over 30 days, over a tenth of the events and over all of them. */

const FEW = 1_000_000;
const MANY = 10_000_000;
const KEYS = 10_000;
const DAYS = 30;
const TURNS = 15;
const DAY_MS = 86_400_000;

const TOP_TEN = `SELECT key_id, SUM(count) AS total FROM key_verifications_per_day_v1
                  WHERE time >= now() - INTERVAL 30 DAY GROUP BY key_id ORDER BY total DESC LIMIT 10`;

interface Seeded {
  readonly stack: Stack;
  readonly apiId: string;
}

const QUESTIONS: readonly { name: string; ask: (of: Seeded) => Promise<number> }[] = [
  {
    name: "v1, hourly for an API over 7 days",
    ask: async ({ stack, apiId }) => {
      const end = Date.now() - (Date.now() % DAY_MS);
      const query = new URLSearchParams({ apiId, groupBy: "hour", start: String(end - 7 * DAY_MS), end: String(end) });
      const response = await fetch(`${stack.apiServer.url}/v1/analytics.getVerifications?${query}`, {
        headers: { authorization: `Bearer ${stack.rootKey}` },
      });
      const rows = (await response.json()) as unknown[];
      if (!response.ok) throw new Error(`v1: ${response.status} ${JSON.stringify(rows)}`);
      return rows.length;
    },
  },
  {
    name: "v2 SQL, the ten most used keys of 30 days",
    ask: async ({ stack }) => (await stack.call<unknown[]>("analytics.getVerifications", { query: TOP_TEN })).length,
  },
];

/** How long questions take over 10,000,000 events, and compared with 1,000,000. Says which tables they read. */
export const usage: Section = async (environment, { progress }) => {
  const open = async (name: string, events: number): Promise<Seeded> => {
    let apiId = "";
    const stack = await environment.openSecond(name, async ({ databaseUrl, workspaceId }) => {
      const startedAt = performance.now();
      ({ apiId } = await seedUsage(databaseUrl, { workspaceId, events, keys: KEYS, days: DAYS }));
      progress(`usage: ${events} events seeded in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
    });
    return { stack, apiId };
  };
  const few = await open("usage_few", FEW);
  const many = await open("usage_many", MANY);
  const figures: Figure[] = [];
  for (const { name, ask } of QUESTIONS) {
    for (const line of await readsOf(many, ask)) progress(`  ${line}`);
    const times = new Map<Seeded, number[]>([few, many].map((each) => [each, []]));
    for (let turn = 0; turn < TURNS; turn += 1) {
      for (const each of turn % 2 === 0 ? [few, many] : [many, few]) {
        let rows = 0;
        times.get(each)?.push(
          await timed(async () => {
            rows = await ask(each);
          }),
        );
        if (rows < 10) throw new Error(`${name}: ${rows} rows`);
      }
    }
    const [ofFew, ofMany] = [median(times.get(few) ?? []), median(times.get(many) ?? [])];
    const detail = `medians ${ofMany.toFixed(0)} and ${ofFew.toFixed(0)} ms`;
    figures.push({ name: `${name}, ${MANY} events`, unit: "ms", value: ofMany, max: 300, detail });
    figures.push({ name: `${name}: ${MANY} events / ${FEW}`, unit: "ratio", value: ofMany / ofFew, max: 3, detail });
  }
  await few.stack.close();
  await many.stack.close();
  return figures;
};

/** Which tables a question reads, as Postgres counts their scans. */
async function readsOf(of: Seeded, ask: (of: Seeded) => Promise<number>): Promise<string[]> {
  const db = new pg.Client({ connectionString: of.stack.databaseUrl });
  await db.connect();
  try {
    const scans = async () => {
      const { rows } = await db.query<{ name: string; scans: number; rows: number }>(
        `select regexp_replace(relname, '_[0-9]+$', '') as name, sum(coalesce(seq_scan, 0) + coalesce(idx_scan, 0))::int as scans,
                sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as rows
           from pg_stat_user_tables where relname ~ '^(verification|ratelimit)_' group by 1 order by 1`,
      );
      return new Map(rows.map((row) => [row.name, row]));
    };
    // The server counts with a delay.
    const settled = () => new Promise((done) => setTimeout(done, 2_000));
    await settled();
    const before = await scans();
    await ask(of);
    await settled();
    const lines: string[] = [];
    for (const [name, now] of await scans()) {
      const was = before.get(name);
      if (was !== undefined && now.scans > was.scans) {
        lines.push(`reads ${name}: ${now.scans - was.scans} scans, ${now.rows - was.rows} rows`);
      }
    }
    return lines;
  } finally {
    await db.end();
  }
}
