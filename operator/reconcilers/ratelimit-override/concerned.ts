import { formatKey } from "../../runtime/object-key.ts";
import { keyOf, type ManifestChange, type ManifestObject, type ManifestSource } from "../../source/contract.ts";
import { namespaceRefOf } from "../raw-spec.ts";

/** Overrides of a RatelimitNamespace that was created, deleted or changed. */
export function overridesConcernedBy(
  change: ManifestChange,
  source: Pick<ManifestSource, "list">,
): readonly ManifestObject[] {
  const object = change.after ?? change.before;
  if (change.kind !== "RatelimitNamespace" || object === undefined) return [];
  const changed = formatKey(keyOf(object));
  return source.list("RatelimitOverride").filter((override) => {
    const ref = namespaceRefOf(override);
    return ref !== undefined && formatKey(ref) === changed;
  });
}
