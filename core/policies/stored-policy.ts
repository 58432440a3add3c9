import * as z from "zod";
import { tolerant } from "../tolerant.ts";
import { type CompiledPolicy, POLICY_FORMAT_VERSION, PolicyInput } from "./policy.ts";

/** A policy that another version may have stored: unknown members are ignored, missing ones get their default. */
export const StoredPolicy = tolerant(PolicyInput);

export type ReadPolicy =
  | { readonly policy: CompiledPolicy; readonly problem?: never }
  /** Reason why this version of the gate cannot enforce the policy. The text states locations and formats, never values. */
  | { readonly policy?: never; readonly problem: string };

/** Parses a stored policy. An unknown format is a problem, even if all its members are known. */
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

/** Projection record through which gates get the policy. `readStoredPolicy` parses its `policy` member. */
export const PolicyRecord = z.object({
  policyId: z.string(),
  name: z.string(),
  apiId: z.string(),
  uid: z.string(),
  generation: z.number(),
  /** Increases with every change of the stored policy, even if the policy gets a new uid. */
  version: z.number(),
  policy: z.unknown(),
});
export type PolicyRecord = z.infer<typeof PolicyRecord>;
