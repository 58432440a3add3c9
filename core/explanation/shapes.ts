import type { Consumed, LimitCharge } from "../charges.ts";
import type { Query } from "../permissions/query.ts";
import type { CompiledPolicy } from "../policies/policy.ts";
import type { OverrideRecord } from "../records.ts";
import type { KeyCheck } from "../verification/check-key.ts";
import type { Code } from "../verification/codes.ts";
import type { ChargePlan } from "../verification/plan-charges.ts";

/*
 * Explains to people why a verification had its outcome: lists each step with the observed value and its source.
 * edge/verification/verify.ts decides the code. This folder evaluates the same checks (KEY_CHECKS), including those after the deciding
 * step.
 */

export const SOURCE_KINDS = [
  "request",
  "policy",
  "workspace",
  "api",
  "key",
  "identity",
  "role",
  "namespace",
  "override",
  "counter",
  "credits",
] as const;

/** Origin of a value. */
export interface Source {
  readonly kind: (typeof SOURCE_KINDS)[number];
  readonly id: string;
  readonly name?: string | undefined;
  /** Maximum age of the data, in ms; −1 if unknown. */
  readonly ageMs: number;
}

export const STEPS = [
  "path",
  "rule",
  "attempts",
  "stale",
  "found",
  "api",
  "workspace",
  "enabled",
  "ofApi",
  "expiry",
  "address",
  "permissions",
  "limits",
  "credits",
] as const;

export interface Step {
  readonly step: (typeof STEPS)[number];
  readonly result: "passed" | "refused" | "skipped";
  /** Whether this step determines the code. */
  readonly decisive: boolean;
  /** The observed value, in the shortest useful form. */
  readonly observed: string;
  /** Explanation as a sentence. */
  readonly detail: string;
  readonly sources: Source[];
}

export interface ExplainedLimit {
  /** Name of the limit, or the id of the limit's namespace. */
  readonly name: string;
  /** Name of the limit's namespace, if known. */
  readonly namespace?: string;
  /** Object to which the limit belongs; `rule` is the policy rule that matched the request. */
  readonly source: "key" | "identity" | "request" | "rule" | "namespace";
  /** Identifier that is counted. */
  readonly identifier: string;
  readonly limit: number;
  readonly duration: number;
  readonly cost: number;
  readonly used: number;
  readonly remaining: number;
  readonly passed: boolean;
  /** End of the window, Unix ms. */
  readonly reset: number;
  /** Earliest time at which a rejected charge could pass, Unix ms; omitted for a charge that passes or can never pass. */
  readonly retryAt?: number;
  /** Whether each process counts by itself and syncs in the background. If so, its count may differ slightly from the count shown here. */
  readonly async: boolean;
  readonly overridden: boolean;
  /** The override that replaced the requested limit. */
  readonly override?: {
    readonly id: string;
    readonly identifier: string;
    readonly limitBefore: number;
    readonly durationBefore: number;
  };
}

export interface ExplainedPermissions {
  readonly needed: {
    readonly slug: string;
    readonly isHeld: boolean;
    /** Slugs that satisfy the permission, at most `BY_MAX`. Without `role`, the key holds the slug directly. */
    readonly by: { readonly slug: string; readonly role?: string }[];
  }[];
  /** Permissions of the key, at most `HELD_MAX`, sorted by slug. */
  readonly held: { readonly slug: string; readonly isDirect: boolean; readonly roles: string[] }[];
  readonly heldCount: number;
}

export interface ExplainedCredits {
  readonly remaining: number;
  readonly cost: number;
  readonly passed: boolean;
}

export interface ExplainedKey {
  readonly steps: Step[];
  readonly permissions: ExplainedPermissions;
  readonly limits: ExplainedLimit[];
  readonly credits?: ExplainedCredits;
}

/** Maximum number of listed permissions. A longer list would be hard to read. */
export const HELD_MAX = 200;
export const BY_MAX = 10;

/** What was observed while a key was verified. */
export interface RecordedVerification {
  /** Input of the key check. `query` is the parsed permission query, or a string that states why the query cannot be parsed. */
  readonly check: Omit<KeyCheck, "query"> & { readonly query: Query | undefined | string };
  /** Code of the verification; `UNKNOWN` if it could not be decided. */
  readonly code: Code | "UNKNOWN";
  /** Maximum age of the records, in ms. */
  readonly recordsAgeMs: number;
  /** Planned charges, or a string that states why the charges cannot be planned. */
  readonly plan: ChargePlan | string;
  /** The counted limits, with their overrides; `undefined` if the counters do not respond. */
  readonly counted: SeenCounts | undefined;
  /** Policy that contains the rule and its limits; `undefined` for an API call. */
  readonly policy?: Omit<Source, "kind"> | undefined;
  /** Fallback for the case that the counters do not respond. */
  readonly uncounted?: SeenUncounted | undefined;
}

/** What the verifying gate or API call does if the shared counters do not respond. */
export interface SeenUncounted extends Pick<CompiledPolicy, "onCounterFailure" | "onCreditFailure"> {
  /** Whether all limits are async. If so, each process always counts by itself, and `onCounterFailure` does not apply. */
  readonly isAsync: boolean;
  /** Decision of a process that counts by itself, starting from empty counters; `undefined` if no process counts by itself. */
  readonly alone: Consumed | undefined;
}

export interface SeenCounts {
  readonly limits: readonly LimitCharge[];
  readonly consumed: Consumed;
  /** Overrides of the limits. An override has the same index as its limit in the plan's `shared`. */
  readonly overrides: readonly (OverrideRecord | undefined)[];
  /** Namespace names by namespace id. */
  readonly namespaces: ReadonlyMap<string, string>;
}
