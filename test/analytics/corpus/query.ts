/** A query of the corpus, and how its answers compare. */
export interface CorpusQuery {
  readonly theme: string;
  readonly query: string;
  /** Which procedure it is for; verifications when left out. */
  readonly of?: "verifications" | "ratelimits";
  /** What ClickHouse is asked instead, where the API differs from it on purpose. */
  readonly oracle?: string;
  /** Why the API refuses it on purpose although ClickHouse may answer it. */
  readonly refused?: string;
  /** The only store that refuses it; the other one answers as ClickHouse does. */
  readonly refusedBy?: "postgres";
  /** ClickHouse refuses it too: the API must answer 400. */
  readonly fails?: boolean;
  /** The result depends on the order in which floats are added. */
  readonly approximate?: boolean;
  /** The order within arrays is not defined. */
  readonly arraysAsSets?: boolean;
}

type Written = string | Omit<CorpusQuery, "theme">;

/** Adds the theme, and what all have in common, to each. */
export const themed = (
  theme: string,
  written: readonly Written[],
  common: Partial<CorpusQuery> = {},
): readonly CorpusQuery[] =>
  written.map((each) => ({ theme, ...common, ...(typeof each === "string" ? { query: each } : each) }));

/** Expressions over one row of a table that has one for sure. */
export const one = (expressions: string): string => `SELECT ${expressions} FROM key_verifications_per_month_v1 LIMIT 1`;
