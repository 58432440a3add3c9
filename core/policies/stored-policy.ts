import * as z from "zod";
import { tolerant } from "../tolerant.ts";
import { type CompiledPolicy, POLICY_FORMAT_VERSION, PolicyInput } from "./policy.ts";

/** A policy as another release may have stored it: unknown members are ignored, missing ones have their default. */
export const StoredPolicy = tolerant(PolicyInput);

export type ReadPolicy =
  | { readonly policy: CompiledPolicy; readonly problem?: never }
  /** Why this release cannot enforce it. It names places and formats, never values. */
  | { readonly policy?: never; readonly problem: string };

/** Makes the complete value of a stored policy. One of a format that is not known is a problem, however much of it is. */
export function readStoredPolicy(stored: unknown): ReadPolicy {
  const { formatVersion } = (stored ?? {}) as { formatVersion?: unknown };
  if (typeof formatVersion === "number" && formatVersion > POLICY_FORMAT_VERSION) {
    return { problem: `format ${formatVersion} is not known here, where ${POLICY_FORMAT_VERSION} is the highest` };
  }
  const read = StoredPolicy.safeParse(stored);
  if (read.success) return { policy: read.data };
  const [issue] = read.error.issues;
  return { problem: `${issue?.path.join(".") || "the whole"}: ${issue?.code ?? "invalid"}` };
}

/** The record under which a policy is projected to the pods. The policy itself is read by `readStoredPolicy`. */
export const PolicyRecord = z.object({
  policyId: z.string(),
  name: z.string(),
  apiId: z.string(),
  uid: z.string(),
  generation: z.number(),
  /** Grows with every change of the stored policy, over all uids. */
  version: z.number(),
  policy: z.unknown(),
});
export type PolicyRecord = z.infer<typeof PolicyRecord>;
