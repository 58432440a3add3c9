import type * as z from "zod";
import { type ManifestProblem, problemsOf } from "../../core/manifests/check.ts";
import type { DeletionPolicy } from "../../core/manifests/fields.ts";
import type { ManifestObject } from "../source/contract.ts";
import { type Reason, stalled, type Verdict } from "./plan.ts";

export type ParsedSpec<Spec> =
  /** `unknown` are the places of fields that this release does not know, such as `spec.target.tls`. */
  | { readonly spec: Spec; readonly unknown?: readonly string[]; readonly problems?: never }
  | { readonly spec?: never; readonly unknown?: never; readonly problems: readonly ManifestProblem[] };

/**
 * Reads a spec. The Kubernetes API server checked it with the CRD of that time, and another release's CRD accepts other specs: a later
 * one may even add fields with defaults to every object. So fields that are not known are left out, and listed. Typing errors are
 * told by the API server, and in a directory by its source, which refuses unknown fields.
 *
 * A field in the `match` of a rule is a problem nevertheless: without it the rule would apply to more requests than it says, and might
 * let them through without a key. So such fields never get a default in a CRD.
 */
export function parseSpec<Schema extends z.ZodType>(
  schema: Schema,
  object: ManifestObject,
): ParsedSpec<z.output<Schema>> {
  const unknown: string[] = [];
  let known = object.spec;
  for (;;) {
    const parsed = schema.safeParse(known);
    if (parsed.success) return unknown.length === 0 ? { spec: parsed.data } : { spec: parsed.data, unknown };
    const strange = parsed.error.issues.filter((issue) => issue.code === "unrecognized_keys");
    if (strange.length === 0 || strange.some(({ path }) => isInMatch(path))) {
      return { problems: problemsOf(parsed.error).map(inSpec) };
    }
    unknown.push(...problemsOf({ issues: strange }).map((problem) => inSpec(problem).location));
    // The rest is checked again: rules over several fields wait until every field is known.
    known = without(known, strange);
  }
}

const isInMatch = ([field, , part]: readonly PropertyKey[]): boolean => field === "rules" && part === "match";

/** A copy without the fields that the issues name. */
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
 * Whether objects of the Kubernetes namespace `from` may refer to an object: those of its own namespace always may, others if its
 * `spec.allowedNamespaces` lists theirs. A spec that does not parse allows nothing.
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

/** Works also for a spec that is otherwise invalid, because an object must always be deletable. */
export function deletionPolicyOf(object: ManifestObject, byDefault: DeletionPolicy): DeletionPolicy {
  const { deletionPolicy } = (object.spec ?? {}) as { deletionPolicy?: unknown };
  return deletionPolicy === "Delete" || deletionPolicy === "Orphan" ? deletionPolicy : byDefault;
}

const SHOWN_MAX = 5;

export function invalid(problems: readonly ManifestProblem[]): Verdict {
  const reason: Reason = problems.every(({ location }) => location.endsWith(".permissions"))
    ? "PermissionQueryInvalid"
    : "InvalidSpec";
  const shown = problems.slice(0, SHOWN_MAX).map(({ location, message }) => `${location}: ${message}`);
  const more = problems.length > SHOWN_MAX ? ` (and ${problems.length - SHOWN_MAX} more)` : "";
  // The message of a query that does not parse ends with a full stop of its own.
  const what = `${shown.join("; ")}${more}`.replace(/\.$/, "");
  return stalled(reason, `${what}. What was in force before stays in force; correct the manifest.`);
}
