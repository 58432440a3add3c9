import { type Comparing, differenceOf } from "../../analytics/compare.ts";
import { FOREIGN_MARK, type MarkedWorld, NOW_MS, openMarkedWorld } from "../../analytics/marked-world.ts";
import { askOracle } from "../../analytics/oracle.ts";
import { KINDS, type Kind, type Replied } from "../../analytics/served.ts";
import { Random } from "../../torture/random.ts";
import { randomQuery } from "./grammar.ts";

/*
 * Plays random queries of the grammar against the API on both stores, with rows of others in them. None may fail in another way than by a
 * problem of the query or a limit, and none may show what is not the caller's. What is answered is what ClickHouse's own engine answers.
 */

export interface Found {
  readonly query: string;
  readonly problem: string;
}

export interface Fuzzed {
  readonly queries: number;
  /** By both stores. */
  readonly answered: number;
  /** Of these, how many were compared with the engine. */
  readonly compared: number;
  readonly refused: number;
  readonly found: readonly Found[];
}

export interface FuzzOptions {
  readonly seed: string;
  /** Whichever ends first. */
  readonly queriesMax: number;
  readonly seconds: number;
  readonly onProgress?: (so: Fuzzed) => void;
}

const FOUND_MAX = 20;
const PROGRESS_EVERY = 500;
const AT_ONCE = 2;
/** An answer is cut there. */
const ROWS_MAX = 1_000;

export async function fuzzAnalytics({ seed, queriesMax, seconds, onProgress }: FuzzOptions): Promise<Fuzzed> {
  const world = await openMarkedWorld();
  const random = new Random(seed);
  const found: Found[] = [];
  let [queries, answered, compared, refused] = [0, 0, 0, 0];
  const so = (): Fuzzed => ({ queries, answered, compared, refused, found });
  const untilMs = performance.now() + seconds * 1000;
  const play = async () => {
    while (queries < queriesMax && performance.now() < untilMs && found.length < FOUND_MAX) {
      const query = randomQuery(random.fork(String(queries++)));
      const played = await playOne(world, query);
      if (played.areAnswered) answered += 1;
      else refused += 1;
      if (played.isCompared) compared += 1;
      found.push(...played.problems.map((problem) => ({ query, problem })));
      if (queries % PROGRESS_EVERY === 0) onProgress?.(so());
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, play));
  } finally {
    await world.close();
  }
  return so();
}

interface Played {
  readonly areAnswered: boolean;
  readonly isCompared: boolean;
  readonly problems: readonly string[];
}

async function playOne({ served, ours, oracleUrl }: MarkedWorld, query: string): Promise<Played> {
  const [postgres, clickhouse] = await Promise.all(KINDS.map((kind) => served.ask(kind, { rootKey: ours, query })));
  if (postgres === undefined || clickhouse === undefined) throw new Error("both were asked");
  const replies: Readonly<Record<Kind, Replied>> = { postgres, clickhouse };
  const problems = KINDS.flatMap((kind) => problemsOf(kind, replies[kind], served.t.logs));
  const answered = KINDS.filter((kind) => replies[kind].rowsJson !== undefined);
  const areAnswered = answered.length === KINDS.length;
  if (answered.length === 0 || !isDetermined(query)) return { areAnswered, isCompared: false, problems };
  const expected = await askOracle(oracleUrl, query, NOW_MS).then(
    (rows) => ({ name: "ClickHouse's engine", rows }),
    (error: Error) => error.message,
  );
  for (const kind of answered) {
    const { rowsJson = "" } = replies[kind];
    const problem =
      typeof expected === "string"
        ? undefined
        : expected.rows.length > ROWS_MAX
          ? undefined
          : differenceOf(expected, { name: kind, rowsJson }, { ...LENIENT, query });
    if (problem !== undefined) problems.push(problem);
  }
  return { areAnswered, isCompared: true, problems };
}

/** A client is told of a problem of its query, or of a limit. */
const EXPECTED: ReadonlySet<number> = new Set([200, 400, 422]);

function problemsOf(kind: Kind, reply: Replied, logs: string[]): string[] {
  if (!EXPECTED.has(reply.status)) return [`${kind} answers ${reply.status}: ${JSON.stringify(reply)}`];
  if (reply.rowsJson !== undefined && FOREIGN_MARK.test(reply.rowsJson)) {
    return [`${kind} shows others' rows: ${reply.rowsJson.slice(0, 200)}`];
  }
  // What a store refuses without a reason of its own is a text that we have written wrongly.
  const isOurs = reply.rowsJson === undefined && /^The query cannot be run/.test(reply.detail);
  return isOurs
    ? [`${kind} refuses what was written for it: ${JSON.stringify(reply)} ${logs.splice(0).join(" ").slice(-1500)}`]
    : [];
}

/** Order is what ties leave open, and floats are added in any order. */
const LENIENT: Omit<Comparing, "query"> = { approximate: true, unordered: true };

/** Whether only one answer is right: which rows a LIMIT leaves, and which value `any` takes, is open. */
const isDetermined = (query: string): boolean => !/\blimit\b|\bany\(/i.test(query);
