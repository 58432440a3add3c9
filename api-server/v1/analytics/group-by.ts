import type { Slice, Target } from "../../../analytics/counts.ts";
import { invalidField } from "../../domain/refusals/refusals.ts";

/** Time slices, coarsest first. If a request names several, the coarsest one applies. */
const SLICES: readonly Slice[] = ["month", "day", "hour"];
const TARGETS: readonly Target[] = ["key", "identity", "tags", "tag"];

/** Names that `groupBy` accepts. */
export const GROUPS: readonly string[] = [...TARGETS, ...SLICES];

export interface Grouping {
  readonly slice: Slice | undefined;
  readonly by: readonly Target[];
}

/** Splits the strings of a list at commas, and returns all non-empty items. */
export const splitCommas = (texts: readonly string[]): string[] =>
  texts.flatMap((text) => text.split(",")).filter((text) => text !== "");

/** Parses `groupBy`. Throws PublicError 400 for an unknown name, or if `tags` and `tag` are combined. */
export function readGroupBy(texts: readonly string[]): Grouping {
  const names = new Set(splitCommas(texts));
  for (const name of names) {
    if (GROUPS.includes(name)) continue;
    throw invalidField("body.groupBy", `expected some of ${GROUPS.join(", ")}, got ${JSON.stringify(name)}`);
  }
  if (names.has("tags") && names.has("tag")) throw invalidField("body.groupBy", "expected tags or tag, got both");
  return { slice: SLICES.find((slice) => names.has(slice)), by: TARGETS.filter((target) => names.has(target)) };
}
