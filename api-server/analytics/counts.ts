import type { Code } from "../../core/verification/codes.ts";

/*
 * Counts of verifications for callers that do not write SQL. Both stores answer them from their aggregated tables, and the contract suite
 * compares the answers with a plain count over the events.
 */

/** A part of the calendar in UTC. */
export type Slice = "hour" | "day" | "month";

/**
 * What a row of the answer stands for besides its slice. `tags` is the whole list of an event. `tag` is each single tag: an event counts in the
 * row of each of its tags, and without tags in none. Events without identity are in no row of `identity`.
 */
export type Target = "key" | "identity" | "tags" | "tag";

export interface CountQuery {
  readonly workspaceId: string;
  /** undefined: those of all key spaces. */
  readonly keySpaceId: string | undefined;
  /** Any of these; undefined: of all keys. */
  readonly keyIds: readonly string[] | undefined;
  readonly identityId: string | undefined;
  /** Events that carry all of these. */
  readonly tags: readonly string[];
  /** Unix ms, a whole hour of UTC. */
  readonly fromMs: number;
  /** The same, exclusive. */
  readonly toMs: number;
  readonly slice: Slice | undefined;
  readonly by: readonly Target[];
  readonly order: CountOrder;
  readonly rowsMax: number;
}

export interface CountOrder {
  /** `time` is that of the slice. Rows that are equal in it are sorted by their slice and targets. */
  readonly by: "time" | "total" | Code;
  readonly descending: boolean;
}

/** A slice, or a target, or one of both, that had events. */
export interface UsageCount {
  /** Unix ms, the start of the slice; undefined without slices. */
  readonly timeMs: number | undefined;
  readonly keyId: string | undefined;
  readonly identity: { readonly id: string; readonly externalId: string } | undefined;
  /** Sorted. */
  readonly tags: readonly string[] | undefined;
  readonly tag: string | undefined;
  readonly byCode: Readonly<Record<Code, number>>;
  /** Of all outcomes, those that this release does not know among them. */
  readonly total: number;
}
