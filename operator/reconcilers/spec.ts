import type * as z from "zod";
import { type ManifestProblem, problemsOf } from "../../core/manifests/check.ts";
import type { DeletionPolicy } from "../../core/manifests/fields.ts";
import type { ManifestObject } from "../source/contract.ts";
import { type Reason, stalled, type Verdict } from "./plan.ts";

export type ParsedSpec<Spec> =
  /** Parsed spec. `raw` is the spec without its unknown fields. `unknown` lists the paths of these fields, such as `spec.target.tls`. */
  | { readonly spec: Spec; readonly raw: object; readonly unknown?: readonly string[]; readonly problems?: never }
  | {
      readonly spec?: never;
      readonly raw?: never;
      readonly unknown?: never;
      readonly problems: readonly ManifestProblem[];
    };

/**
 * Parses a spec. The Kubernetes API server validated the spec against the CRD of that time, and another version of the CRD may accept other
 * specs or add fields with defaults to every object. Unknown fields are therefore omitted and listed. Misspelled fields are reported by
 * the API server, or rejected by the source of a directory.
 *
 * An unknown field in the `match` of a rule is an error, because without the field the rule would apply to more requests and might admit
 * them without a key. Therefore a CRD never defines a default for such a field.
 */
export function parseSpec<Schema extends z.ZodType>(
  schema: Schema,
  object: ManifestObject,
): ParsedSpec<z.output<Schema>> {
  const unknown: string[] = [];
  let known = object.spec;
  for (;;) {
    const parsed = schema.safeParse(known);
    if (parsed.success) {
      return { spec: parsed.data, raw: known as object, ...(unknown.length === 0 ? {} : { unknown }) };
    }
    const strange = parsed.error.issues.filter((issue) => issue.code === "unrecognized_keys");
    if (strange.length === 0 || strange.some(({ path }) => isInMatch(path))) {
      return { problems: problemsOf(parsed.error).map(inSpec) };
    }
    unknown.push(...problemsOf({ issues: strange }).map((problem) => inSpec(problem).location));
    // Parses the spec again without its unknown fields, because rules that span several fields are checked only if every field is known.
    known = without(known, strange);
  }
}

const isInMatch = ([field, , part]: readonly PropertyKey[]): boolean => field === "rules" && part === "match";

/** Returns a copy of the spec without the fields that the issues name. */
function without(spec: unknown, issues: readonly z.core.$ZodIssueUnrecognizedKeys[]): unknown {
  const copy: unknown = structuredClone(spec);
  for (const { path, keys } of issues) {
    let at = copy;
    for (const part of path) at = (at as Record<PropertyKey, unknown>)[part];
    for (const key of keys) delete (at as Record<string, unknown>)[key];
  }
  return copy;
}

const inSpec = ({ location, message }: ManifestProblem): ManifestProblem => ({
  location: location === "manifest" ? "spec" : `spec.${location}`,
  message,
});

/**
 * Returns whether objects of the Kubernetes namespace `from` may refer to an object. Objects in the same namespace always may. Others may
 * only if `spec.allowedNamespaces` lists their namespace, which requires a valid spec.
 */
export function mayRefer(
  schema: z.ZodType<{ readonly allowedNamespaces: readonly string[] }>,
  object: ManifestObject,
  from: string,
): boolean {
  if (object.metadata.namespace === from) return true;
  const { spec } = parseSpec(schema, object);
  return spec?.allowedNamespaces.includes(from) ?? false;
}

/**
 * Returns `spec.deletionPolicy`; `undefined` for the default of the kind. Also reads it from an otherwise invalid spec, because an object
 * must always be deletable.
 */
export function deletionPolicyOf(object: ManifestObject): DeletionPolicy | undefined {
  const { deletionPolicy } = (object.spec ?? {}) as { deletionPolicy?: unknown };
  return deletionPolicy === "Delete" || deletionPolicy === "Orphan" ? deletionPolicy : undefined;
}

const SHOWN_MAX = 5;

export function invalid(problems: readonly ManifestProblem[]): Verdict {
  const reason: Reason = problems.every(({ location }) => location.endsWith(".permissions"))
    ? "PermissionQueryInvalid"
    : "InvalidSpec";
  const shown = problems.slice(0, SHOWN_MAX).map(({ location, message }) => `${location}: ${message}`);
  const more = problems.length > SHOWN_MAX ? ` (and ${problems.length - SHOWN_MAX} more)` : "";
  // Removes the second period: the message about an invalid query already ends with one.
  const what = `${shown.join("; ")}${more}`.replace(/\.$/, "");
  return stalled(reason, `${what}. The previous state stays active; correct the manifest.`);
}
