import type * as z from "zod";
import { type ManifestProblem, problemsOf } from "../../core/manifests/check.ts";
import type { DeletionPolicy } from "../../core/manifests/fields.ts";
import type { ManifestObject } from "../source/contract.ts";
import { type Reason, stalled, type Verdict } from "./plan.ts";

export type ParsedSpec<Spec> =
  | { readonly spec: Spec; readonly problems?: never }
  | { readonly spec?: never; readonly problems: readonly ManifestProblem[] };

/** The API server has checked the spec, but by the CRD that it had then: an older or newer one lets other specs through. */
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
 * Whether objects of the Kubernetes namespace `from` may refer to an object: those of its own always may, others when its
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

/** Also of a spec that does not parse otherwise: an object must be deletable whatever state it is in. */
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
