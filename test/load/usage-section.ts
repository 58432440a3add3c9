import pg from "pg";
import { DAY_MS } from "../../core/utc-date.ts";
import { createPool } from "../../postgres/pool.ts";
import { lastWeek, type Plan, planOfCount, planOfQuery, weekByTheHour } from "../analytics/plans.ts";
import { startOwnClickhouse } from "../harness/clickhouse.ts";
import type { Environment } from "./environment.ts";
import { median } from "./measure.ts";
import { type Figure, type Section, type SectionOptions, timed } from "./section.ts";
import { seedUsage } from "./seed-usage.ts";
import { seedUsageClickhouse } from "./seed-usage-clickhouse.ts";
import { READY_LOG, type Running, type Stack } from "./stack.ts";
import type { Usage } from "./usage-formula.ts";

/*
 * Questions about the usage of 10,000 keys over 30 days, asked by HTTP: over all events and over a tenth of them, on Postgres and on
 * ClickHouse, by turns. Both stores hold the same events, and their answers are compared.
 */

const KEYS = 10_000;
const DAYS = 30;
const TURNS = 25;
const RATIO_MAX = 3;

interface Seeded {
  readonly stack: Stack;
  readonly usage: Usage;
  readonly stores: readonly { readonly name: string; readonly server: Running }[];
}

interface Question {
  readonly name: string;
  readonly msMax: number;
  /** Returns what must be equal on both stores. */
  readonly ask: (of: Seeded, server: Running) => Promise<unknown>;
  /** What Postgres reads for it. */
  readonly plan: (of: Seeded) => Promise<Plan>;
  /** As one would write it by hand, over the table itself, without scope, limits and encoding. */
  readonly byHand: string;
}

const LATEST = "SELECT * FROM key_verifications_v1 ORDER BY time DESC LIMIT 50";
const TOP_TEN = `SELECT key_id, SUM(count) AS total FROM key_verifications_per_day_v1
                  WHERE time >= now() - INTERVAL 30 DAY GROUP BY key_id ORDER BY total DESC LIMIT 10`;

const QUESTIONS: readonly Question[] = [
  {
    name: "v1, hourly for an API over 7 days",
    msMax: 300,
    ask: async ({ stack, usage }, { url }) => {
      const { fromMs, toMs } = lastWeek(usage);
      const asked = { apiId: usage.apiId, groupBy: "hour", start: String(fromMs), end: String(toMs - 1) };
      return responseOf(
        await fetch(`${url}/v1/analytics.getVerifications?${new URLSearchParams(asked)}`, {
          headers: { authorization: `Bearer ${stack.rootKey}` },
        }),
      );
    },
    plan: async ({ stack, usage }) => {
      const db = createPool(stack.databaseUrl, { connectionsMax: 1 });
      return planOfCount(db, weekByTheHour(usage)).finally(() => db.end());
    },
    byHand: `select time, sum(count) from verification_totals_hour
              where workspace_id = $1 and time >= current_date - 7 and time < current_date group by 1 order by 1`,
  },
  {
    name: "v2 SQL, the ten most used keys of 30 days",
    msMax: 300,
    // Keys with the same total may change places.
    ask: async (of, server) => (await query<{ total: number }>(of, server, TOP_TEN)).map(({ total }) => total),
    plan: (of) => planOf(of, TOP_TEN),
    byHand: `select key_id, sum(count) from verification_key_totals_day
              where workspace_id = $1 and time >= current_date - 29 group by 1 order by 2 desc limit 10`,
  },
  {
    name: "v2 SQL, the latest 50 verifications",
    msMax: 50,
    ask: async (of, server) => (await query<{ time: number }>(of, server, LATEST)).map(({ time }) => time),
    plan: (of) => planOf(of, LATEST),
    byHand: "select * from verification_events where workspace_id = $1 order by time desc limit 50",
  },
];

async function query<Row>({ stack }: Seeded, { url }: Running, text: string): Promise<Row[]> {
  const headers = { authorization: `Bearer ${stack.rootKey}`, "content-type": "application/json" };
  const body = JSON.stringify({ query: text });
  const response = await fetch(`${url}/v2/analytics.getVerifications`, { method: "POST", headers, body });
  return (await responseOf<{ data: Row[] }>(response)).data;
}

function planOf({ stack, usage }: Seeded, text: string): Promise<Plan> {
  const nowMs = Date.now();
  const fromMs = nowMs - DAYS * DAY_MS;
  const visibleFrom = { raw: fromMs, minute: fromMs, hour: fromMs, day: fromMs, month: fromMs };
  return planOfQuery(stack.databaseUrl, text, {
    workspaceId: usage.workspaceId,
    within: undefined,
    nowMs,
    visibleFrom,
  });
}

/** Panels of a dashboard that a person opens. */
const PANELS = 8;

/** Time until all panels of a dashboard that asks for them at once have their rows. */
async function panels(of: Seeded): Promise<Figure> {
  const times: number[] = [];
  for (let turn = 0; turn < TURNS; turn += 1) {
    const texts = Array.from({ length: PANELS }, (_, panel) => (panel % 2 === 0 ? TOP_TEN : LATEST));
    times.push(await timed(() => Promise.all(texts.map((text) => query(of, of.stack.apiServer, text)))));
  }
  return {
    name: `${PANELS} panels at once, ${eventsOf(of.usage)} events`,
    unit: "ms",
    value: median(times),
    max: 1000,
    detail: `all rows after ${inMs(times)}; half of the panels ask for the ten most used keys, half for the latest 50`,
  };
}

async function responseOf<Body>(response: Response): Promise<Body> {
  const body = (await response.json()) as Body;
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${JSON.stringify(body)}`);
  return body;
}

/** How long questions take over many events on Postgres, and compared with a tenth of them. Says what their plans read. */
export const usage: Section = async (environment, options) => {
  const { usageEvents, progress } = options;
  const figures: Figure[] = [];
  const few = await open(environment, usageEvents / 10, options);
  const many = await open(environment, usageEvents, options).catch(async (error: unknown) => {
    await few.close();
    throw error;
  });
  try {
    for (const question of QUESTIONS) {
      const times = await measure(question, [few, many], (turn) =>
        progress(`${question.name}: turn ${turn} of ${TURNS}`),
      );
      const ofMany = times.get(many)?.get("Postgres") ?? [];
      const ofFew = times.get(few)?.get("Postgres") ?? [];
      const name = `${question.name}, ${usageEvents} events`;
      const details = [...times].flatMap(([{ usage }, of]) =>
        [...of].map(([how, ms]) => `${how} over ${eventsOf(usage)}: ${inMs(ms)}`),
      );
      const reads = `its plan reads ${readsOf(await question.plan(many))}`;
      const detail = [...details, reads].join("; ");
      figures.push({ name, unit: "ms", value: median(ofMany), max: question.msMax, detail });
      figures.push({
        name: `${name} / ${usageEvents / 10}`,
        unit: "ratio",
        value: median(ofMany) / median(ofFew),
        max: RATIO_MAX,
        detail: `medians of ${TURNS} turns; over the tenth its plan reads ${readsOf(await question.plan(few))}`,
      });
    }
    progress(`${PANELS} panels at once`);
    figures.push(await panels(many));
  } finally {
    await few.close();
    await many.close();
  }
  return figures;
};

const eventsOf = ({ eventsPerDay, days }: Usage): number => eventsPerDay * days.length;
const inMs = (ms: readonly number[]): string => `${median(ms).toFixed(0)} ms, at most ${Math.max(...ms).toFixed(0)}`;

async function open(environment: Environment, events: number, { clickhouseEvents, progress }: SectionOptions) {
  const startedAt = performance.now();
  const seconds = () => `${((performance.now() - startedAt) / 1000).toFixed(0)} s`;
  let made: Usage | undefined;
  const stack = await environment.openSecond(`usage_${events}`, async ({ databaseUrl, workspaceId }) => {
    made = await seedUsage(databaseUrl, {
      workspaceId,
      events,
      keys: KEYS,
      days: DAYS,
      progress: (line) => progress(`seeding ${events}, ${seconds()}: ${line}`),
    });
  });
  if (made === undefined) throw new Error("nothing was seeded");
  const stores = [{ name: "Postgres", server: stack.apiServer }];
  const clickhouse = events <= clickhouseEvents ? await startOwnClickhouse() : undefined;
  const close = async () => {
    await stack.close();
    await clickhouse?.stop();
  };
  try {
    if (clickhouse !== undefined) {
      stores.push({ name: "ClickHouse", server: await openOnClickhouse(clickhouse.url, stack, made) });
    }
    progress(`seeding ${events}: done after ${seconds()}`);
    return { stack, usage: made, stores, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Another api-server of the stack, whose usage is in a ClickHouse with the same events. */
async function openOnClickhouse(url: string, stack: Stack, usage: Usage): Promise<Running> {
  const db = createPool(stack.databaseUrl, { connectionsMax: 1 });
  await seedUsageClickhouse(url, db, usage).finally(() => db.end());
  const place = ["--host", "127.0.0.1", "--port", "0", "--analytics-url", url];
  return stack.start(["cli/main.ts", "api-server", ...place], READY_LOG);
}

/** Asks each store of each by turns, every second turn in reverse. Returns times in ms, without those of a first turn. */
async function measure(
  question: Question,
  all: readonly Seeded[],
  onTurn: (turn: number) => void,
): Promise<Map<Seeded, Map<string, number[]>>> {
  const times = new Map(all.map((each) => [each, new Map<string, number[]>()]));
  const responses = new Map<Seeded, string>();
  const asked: { of: Seeded; how: string; run: () => Promise<void> }[] = [];
  const sessions: pg.Client[] = [];
  for (const of of all) {
    const db = new pg.Client({ connectionString: of.stack.databaseUrl });
    await db.connect();
    sessions.push(db);
    for (const { name, server } of of.stores) {
      asked.push({
        of,
        how: name,
        run: async () => {
          const response = JSON.stringify(await question.ask(of, server));
          const other = responses.get(of) ?? response;
          if (response.length < 10 || response !== other)
            throw new Error(`${name} answers ${response}, and not ${other}`);
          responses.set(of, response);
        },
      });
    }
    asked.push({
      of,
      how: "by hand",
      run: async () => void (await db.query(question.byHand, [of.usage.workspaceId])),
    });
  }
  try {
    for (let turn = 0; turn <= TURNS; turn += 1) {
      if (turn % 5 === 0) onTurn(turn);
      for (const { of, how, run } of turn % 2 === 0 ? asked : asked.toReversed()) {
        const ms = await timed(run);
        if (turn > 0) times.get(of)?.set(how, [...(times.get(of)?.get(how) ?? []), ms]);
      }
    }
  } finally {
    for (const db of sessions) await db.end();
  }
  return times;
}

/** Such as "12 rows of verification_totals_hour_202611 (Index Scan by …)". */
const readsOf = ({ scans, blocks }: Plan): string =>
  `${scans.map(({ partition, how, rows }) => `${rows} rows of ${partition} (${how})`).join(", ")}: ${blocks} blocks`;
