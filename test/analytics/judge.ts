import { differenceOf } from "./compare.ts";
import type { CorpusQuery } from "./corpus/query.ts";
import type { Seen } from "./corpus-world.ts";
import { NOW_MS } from "./events.ts";
import { askOracle } from "./oracle.ts";
import { KINDS, type Kind, type Replied, type Served } from "./served.ts";

export type Verdict =
  | { readonly kind: "same" }
  | { readonly kind: "refused"; readonly why: string }
  | { readonly kind: "different"; readonly how: string };

/** What each store of the API makes of a query. */
export interface Judged {
  readonly query: CorpusQuery;
  readonly verdicts: Readonly<Record<Kind, Verdict>>;
}

const NAMES: Readonly<Record<Kind, string>> = { postgres: "Postgres", clickhouse: "the store on ClickHouse" };
const ORACLE = "ClickHouse's engine";

/** Asks ClickHouse's own engine, and the API on both stores, and compares. */
export async function judge(served: Served, { rootKey, oracleUrl }: Seen, query: CorpusQuery): Promise<Judged> {
  const asked = { rootKey, query: query.query, of: query.of };
  const [expected, ...replies] = await Promise.all([
    askOracle(oracleUrl, query.oracle ?? query.query, NOW_MS).then(
      (rows) => ({ rows }),
      (error: Error) => ({ refusal: error.message }),
    ),
    ...KINDS.map((kind) => served.ask(kind, asked)),
  ]);
  const verdictOf = (kind: Kind): Verdict => {
    const reply = replies[KINDS.indexOf(kind)];
    if (reply?.rowsJson === undefined) return refusedOrFailed(reply);
    if ("refusal" in expected) return { kind: "different", how: `${ORACLE} refuses it: ${expected.refusal}` };
    const how = differenceOf({ name: ORACLE, ...expected }, { name: NAMES[kind], ...reply }, query);
    return how === undefined ? { kind: "same" } : { kind: "different", how };
  };
  return { query, verdicts: { postgres: verdictOf("postgres"), clickhouse: verdictOf("clickhouse") } };
}

function refusedOrFailed(reply: Exclude<Replied, { status: 200 }> | undefined): Verdict {
  if (reply === undefined) return { kind: "different", how: "no answer" };
  const text = `${reply.status} ${reply.kind}: ${reply.detail}`;
  return reply.status === 400 ? { kind: "refused", why: text } : { kind: "different", how: text };
}

/** Whether it is refused on purpose: because the dialect says so, or because ClickHouse refuses it too. */
const mayBeRefused = ({ refused, refusedBy, fails }: CorpusQuery, kind: Kind): boolean =>
  fails === true || (refused !== undefined && (refusedBy ?? kind) === kind);

/** Returns what is wrong with the verdicts. */
export function problemsOf({ query, verdicts }: Judged): string[] {
  const found = KINDS.flatMap((kind) => {
    const verdict = verdicts[kind];
    if (verdict.kind === "different") return [verdict.how];
    if ((verdict.kind === "refused") === mayBeRefused(query, kind)) return [];
    const how = verdict.kind === "refused" ? verdict.why : "is answered, and the corpus says that it is refused";
    return [`${NAMES[kind]}: ${how}`];
  });
  return found.map((fault) => `${query.query}\n  ${fault}`);
}

/** A line per theme. */
export function toTable(judged: readonly Judged[]): string {
  const themes = [...new Set(judged.map(({ query }) => query.theme)), undefined];
  const lines = themes.map((theme) => {
    const own = judged.filter(({ query }) => theme === undefined || query.theme === theme);
    const count = (of: Verdict["kind"]) =>
      KINDS.map((kind) => String(own.filter(({ verdicts }) => verdicts[kind].kind === of).length)).join(", ");
    return row(theme ?? "all", String(own.length), count("same"), count("refused"), count("different"));
  });
  return [row("Postgres, ClickHouse", "queries", "same", "refused", "different"), ...lines].join("\n");
}

const row = (theme: string, ...cells: readonly string[]): string =>
  theme.padEnd(26) + cells.map((cell) => cell.padStart(10)).join("");
