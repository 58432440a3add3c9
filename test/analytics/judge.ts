import { type Answer, differenceOf } from "./compare.ts";
import type { CorpusQuery } from "./corpus/query.ts";
import { askOracle } from "./oracle.ts";
import { Refused, type Side } from "./postgres-side.ts";

export type Verdict =
  | { readonly kind: "same" }
  /** Also when ClickHouse refuses it too. */
  | { readonly kind: "refused"; readonly why: string }
  | { readonly kind: "different"; readonly how: string };

export interface Judged {
  readonly query: CorpusQuery;
  readonly verdict: Verdict;
}

/** Asks ClickHouse and the side the same, and compares. */
export async function judge(oracleUrl: string, side: Side, query: CorpusQuery): Promise<Verdict> {
  let expected: Answer | undefined;
  let refusal = "";
  try {
    expected = await askOracle(oracleUrl, query.oracle ?? query.query);
  } catch (error) {
    refusal = error instanceof Error ? error.message : String(error);
  }
  try {
    const got = await side.ask(query);
    if (expected === undefined) return { kind: "different", how: `ClickHouse refuses it: ${refusal}` };
    const how = differenceOf(expected, got, query);
    return how === undefined ? { kind: "same" } : { kind: "different", how };
  } catch (error) {
    if (error instanceof Refused) return { kind: "refused", why: error.message };
    return { kind: "different", how: faultText(error) };
  }
}

const faultText = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause as { err?: Error } | undefined;
  return `fails: ${cause?.err?.message ?? ""} ${error.message}`;
};

/** Whether it is refused on purpose: because the dialect says so, or because ClickHouse refuses it too. */
const mayBeRefused = ({ refused, fails }: CorpusQuery): boolean => refused !== undefined || fails === true;

/** Returns what is wrong with a verdict, or undefined. */
export function faultOf({ query, verdict }: Judged): string | undefined {
  if (verdict.kind === "different") return verdict.how;
  if ((verdict.kind === "refused") === mayBeRefused(query)) return undefined;
  return verdict.kind === "refused" ? `refused: ${verdict.why}` : "is answered, and the corpus says that it is refused";
}

/** A line per theme. */
export function toTable(judged: readonly Judged[]): string {
  const themes = [...new Set(judged.map(({ query }) => query.theme)), undefined];
  const lines = themes.map((theme) => {
    const own = judged.filter(({ query }) => theme === undefined || query.theme === theme);
    const count = (kind: Verdict["kind"]) => String(own.filter(({ verdict }) => verdict.kind === kind).length);
    return row(theme ?? "all", String(own.length), count("same"), count("refused"), count("different"));
  });
  return [row("theme", "queries", "same", "refused", "different"), ...lines].join("\n");
}

const row = (theme: string, ...cells: readonly string[]): string =>
  theme.padEnd(26) + cells.map((cell) => cell.padStart(10)).join("");
