import type * as z from "zod";
import { type ManifestProblem, problemsOf } from "../../core/manifests/check.ts";
import type { DeletionPolicy } from "../../core/manifests/fields.ts";
import type { ManifestObject } from "../source/contract.ts";
import { type Reason, stalled, type Verdict } from "./plan.ts";

export type ParsedSpec<Spec> =
  | { readonly spec: Spec; readonly problems?: never }
  | { readonly spec?: never; readonly problems: readonly ManifestProblem[] };

/** The Kubernetes API server checked the spec with the CRD of that time: an older or newer CRD accepts other specs. */
export function parseSpec<Schema extends z.ZodType>(
  schema: Schema,
  object: ManifestObject,
): ParsedSpec<z.output<Schema>> {
  const parsed = schema.safeParse(object.spec);
  return parsed.success ? { spec: parsed.data } : { problems: problemsOf(parsed.error).map(inSpec) };
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
  { metadata, spec }: ManifestObject,
  from: string,
): boolean {
  if (metadata.namespace === from) return true;
  const parsed = schema.safeParse(spec);
  return parsed.success && parsed.data.allowedNamespaces.includes(from);
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
  return stalled(reason, `${shown.join("; ")}${more}. What was in force before stays in force; correct the manifest.`);
}
