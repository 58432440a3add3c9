import { keyOf, type ManifestChange, type ManifestObject } from "../../source/contract.ts";
import { type ObjectLookup, toObject } from "../indexes.ts";

/** Returns the overrides of a RatelimitNamespace that was created, deleted or changed. */
export function overridesConcernedBy(change: ManifestChange, source: ObjectLookup): readonly ManifestObject[] {
  const object = change.after ?? change.before;
  if (change.kind !== "RatelimitNamespace" || object === undefined) return [];
  return source.having("RatelimitOverride", "reference", toObject("RatelimitNamespace", keyOf(object)));
}
