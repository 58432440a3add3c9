import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { stopOwnParts } from "../harness/broker.ts";
import { CORPUS } from "./corpus/all.ts";
import { type CorpusWorld, openCorpusWorld } from "./corpus-world.ts";
import { NOW_MS } from "./events.ts";
import { rowsOf } from "./json-text.ts";
import { type Judged, judge, problemsOf, toTable } from "./judge.ts";
import { askOracle } from "./oracle.ts";
import { KINDS } from "./served.ts";

const HELP = `npm run analytics:compare -- [options] [QUERY…]

Asks ClickHouse's own engine, and the API on Postgres and on ClickHouse, the same over the same 30,000 events. Without a query: the whole corpus, with
a line per theme. Loading takes half a minute: give several queries at once, or - to read them from standard input, a line each.

  --theme TEXT      only themes that contain it
  --of WHAT         verifications or ratelimits, for QUERY

Exit code: 0 when nothing is different and what is refused is what the corpus says, else 1.`;

const ROWS_SHOWN = 20;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    theme: { type: "string", default: "" },
    of: { type: "string", default: "verifications" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}

const world = await openCorpusWorld();
try {
  process.exitCode = positionals.length === 0 ? await judgeCorpus(world) : await showEach(world, positionals);
} finally {
  await world.close();
  await stopOwnParts();
}

async function showEach(of: CorpusWorld, given: readonly string[]): Promise<number> {
  if (given[0] !== "-") {
    for (const query of given) await show(of, query);
    return 0;
  }
  for await (const line of createInterface({ input: process.stdin })) if (line.trim() !== "") await show(of, line);
  return 0;
}

async function show({ served, main }: CorpusWorld, query: string): Promise<void> {
  const of = values.of === "ratelimits" ? "ratelimits" : "verifications";
  const oracle = await askOracle(main.oracleUrl, query, NOW_MS).catch((error: Error) => [error.message]);
  console.log([query, "ClickHouse's engine", ...oracle.slice(0, ROWS_SHOWN)].join("\n  "));
  for (const kind of KINDS) {
    const reply = await served.ask(kind, { rootKey: main.rootKey, query, of });
    const lines =
      reply.rowsJson === undefined ? [`${reply.status} ${reply.kind}: ${reply.detail}`] : rowsOf(reply.rowsJson);
    console.log([` ${kind}`, ...lines.slice(0, ROWS_SHOWN)].join("\n  "));
  }
}

async function judgeCorpus({ served, main }: CorpusWorld): Promise<number> {
  const judged: Judged[] = [];
  for (const query of CORPUS.filter(({ theme }) => theme.includes(values.theme))) {
    const one = await judge(served, main, query);
    judged.push(one);
    for (const fault of problemsOf(one)) console.log(`${fault}\n`);
  }
  console.log(toTable(judged));
  return judged.every((one) => problemsOf(one).length === 0) ? 0 : 1;
}
