import type { Code } from "../core/verification/codes.ts";

/*
 * Verification counts for callers that do not write SQL. Both stores read them from aggregated tables. The contract suite compares the
 * results with a direct count over the events.
 */

/** Calendar unit in UTC. */
export type Slice = "hour" | "day" | "month";

/**
 * Grouping of the result in addition to time slices. `tags` groups by the complete tag list of an event. `tag` counts an event once per
 * tag, and omits events without tags. `identity` omits events without an identity.
 */
export type Target = "key" | "identity" | "tags" | "tag";

export interface CountQuery {
  readonly workspaceId: string;
  /** Selects events of any of these key spaces; `undefined` for all key spaces. */
  readonly keySpaceIds: readonly string[] | undefined;
  /** Selects events of any of these keys; `undefined` for all keys. */
  readonly keyIds: readonly string[] | undefined;
  readonly identityId: string | undefined;
  /** Selects events that have all of these tags. */
  readonly tags: readonly string[];
  /** Start, Unix ms; a full hour in UTC. */
  readonly fromMs: number;
  /** Exclusive end, Unix ms; a full hour in UTC. */
  readonly toMs: number;
  readonly slice: Slice | undefined;
  readonly by: readonly Target[];
  readonly order: CountOrder;
  readonly rowsMax: number;
}

export interface CountOrder {
  /** Sort key. `time` is the start of the slice. Ties are sorted by slice and then by target. */
  readonly by: "time" | "total" | Code;
  readonly descending: boolean;
}

/** Counts for a slice, for a target, or for a combination of the two. Combinations without events are omitted. */
export interface UsageCount {
  /** Start of the slice, Unix ms; `undefined` without slices. */
  readonly timeMs: number | undefined;
  readonly keyId: string | undefined;
  readonly identity: { readonly id: string; readonly externalId: string } | undefined;
  /** Sorted. */
  readonly tags: readonly string[] | undefined;
  readonly tag: string | undefined;
  readonly byCode: Readonly<Record<Code, number>>;
  /** Number of verifications with any outcome, including outcomes that this version does not know. */
  readonly total: number;
}
