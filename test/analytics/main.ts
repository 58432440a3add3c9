import { parseArgs } from "node:util";
import { stopOwnParts } from "../harness/broker.ts";
import { createTestClickhouse } from "../harness/clickhouse.ts";
import { createTestDatabase } from "../harness/postgres.ts";
import { type Answer, textOf } from "./compare.ts";
import { CORPUS } from "./corpus/all.ts";
import { corpusEvents } from "./events.ts";
import { faultOf, type Judged, judge, toTable } from "./judge.ts";
import { askOracle, loadOracle } from "./oracle.ts";
import { loadPostgres, openPostgresSide, withPool } from "./postgres-side.ts";

const HELP = `npm run analytics:compare -- [options] [QUERY…]

Asks ClickHouse's own engine and Postgres the same over the same 100,000 events. Without a query: the whole corpus, with a line per theme.

  --theme TEXT      only themes that contain it
  --of WHAT         verifications or ratelimits, for QUERY
  --stay            keep the parts running until interrupted, and print the options with which further runs use them
  --postgres URL    a database that an earlier run with --stay has filled, with
  --clickhouse URL  that of the same run

Exit code: 0 when nothing is different and what is refused is what the corpus says, else 1.`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    theme: { type: "string", default: "" },
    of: { type: "string", default: "verifications" },
    stay: { type: "boolean", default: false },
    postgres: { type: "string" },
    clickhouse: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}

const urls = await openStores();
const side = openPostgresSide(urls.postgres);
try {
  process.exitCode = positionals.length > 0 ? await showEach(positionals) : await judgeCorpus();
  if (values.stay) {
    console.log(`--postgres '${urls.postgres}' --clickhouse '${urls.clickhouse}'`);
    await new Promise((resolve) => process.once("SIGINT", resolve));
  }
} finally {
  await side.close();
  await stopOwnParts();
}

async function openStores(): Promise<{ postgres: string; clickhouse: string }> {
  if (values.postgres !== undefined && values.clickhouse !== undefined) {
    return { postgres: values.postgres, clickhouse: values.clickhouse };
  }
  const [postgres, clickhouse] = [await createTestDatabase(), await createTestClickhouse()];
  const events = corpusEvents();
  await withPool(postgres.url, (db) => loadPostgres(db, events));
  await loadOracle(clickhouse.url, events);
  return { postgres: postgres.url, clickhouse: clickhouse.url };
}

async function showEach(queries: readonly string[]): Promise<number> {
  for (const query of queries) {
    const of = values.of === "ratelimits" ? "ratelimits" : "verifications";
    console.log(`${query}\nClickHouse: ${await shown(askOracle(urls.clickhouse, query))}`);
    console.log(`Postgres:   ${await shown(side.ask({ theme: "", query, of }))}\n`);
  }
  return 0;
}

async function shown(asked: Promise<Answer>): Promise<string> {
  try {
    const { names, types = [], rows } = await asked;
    return [names, types, ...rows.slice(0, 20)].map(textOf).join("\n            ");
  } catch (error) {
    if (!(error instanceof Error)) return String(error);
    return `${error.message}\n${(error.cause as { err?: Error } | undefined)?.err?.message ?? ""}`;
  }
}

async function judgeCorpus(): Promise<number> {
  const judged: Judged[] = [];
  for (const query of CORPUS.filter(({ theme }) => theme.includes(values.theme))) {
    const one = { query, verdict: await judge(urls.clickhouse, side, query) };
    judged.push(one);
    const fault = faultOf(one);
    if (fault !== undefined) console.log(`${query.query}\n  ${fault}\n`);
  }
  console.log(toTable(judged));
  return judged.every((one) => faultOf(one) === undefined) ? 0 : 1;
}
