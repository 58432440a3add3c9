import type { Consumed, LimitCharge } from "../charges.ts";
import type { Query } from "../permissions/query.ts";
import type { CompiledPolicy } from "../policies/policy.ts";
import type { OverrideRecord } from "../records.ts";
import type { KeyCheck } from "../verification/check-key.ts";
import type { Code } from "../verification/codes.ts";
import type { ChargePlan } from "../verification/plan-charges.ts";

/*
 * Why a verification ended as it did, for people: each step with what it saw and where that came from. The code itself is decided elsewhere
 * (edge/verification/verify.ts); what was seen there is put into words here, and the checks are those that decide (KEY_CHECKS). So
 * an explanation also says how the steps after the one that decided would have ended.
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

/** Where a value was seen. */
export interface Source {
  readonly kind: (typeof SOURCE_KINDS)[number];
  readonly id: string;
  readonly name?: string | undefined;
  /** How old what is known of it may be, ms; −1 when that is not known. */
  readonly ageMs: number;
}

export const STEPS = [
  "path",
  "rule",
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
  /** Whether this step decides the code. */
  readonly decides: boolean;
  /** The value that was looked at, as short as it can be. */
  readonly saw: string;
  /** In words. */
  readonly detail: string;
  readonly sources: Source[];
}

export interface ExplainedLimit {
  /** Name of the limit, or id of its namespace. */
  readonly name: string;
  /** Name of its namespace, where that is known. */
  readonly namespace?: string;
  /** Whose limit it is; `rule`: of the rule that matched. */
  readonly source: "key" | "identity" | "request" | "rule" | "namespace";
  /** Who is counted. */
  readonly identifier: string;
  readonly limit: number;
  readonly duration: number;
  readonly cost: number;
  readonly used: number;
  readonly remaining: number;
  readonly passed: boolean;
  /** Unix ms: the end of the window. */
  readonly reset: number;
  /** Unix ms: when a refused charge could pass; left out when it passes, or never can. */
  readonly retryAt?: number;
  /** Counted in each process and synced in the background: a process may know a little more or less than this. */
  readonly async: boolean;
  readonly overridden: boolean;
  /** The override that replaced what was asked for. */
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
    /** What satisfies it, at most `BY_MAX`; without a role the key holds it itself. */
    readonly by: { readonly slug: string; readonly role?: string }[];
  }[];
  /** At most `HELD_MAX`, by slug. */
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

/** As many as a person reads. */
export const HELD_MAX = 200;
export const BY_MAX = 10;

/** What a verification of a key saw. */
export interface SeenVerification {
  /** With the query that was asked; a string says why it cannot be read. */
  readonly check: Omit<KeyCheck, "query"> & { readonly query: Query | undefined | string };
  /** `UNKNOWN`: it could not be decided. */
  readonly code: Code | "UNKNOWN";
  /** How old the records may be, ms. */
  readonly recordsAgeMs: number;
  /** A string says why the charges cannot be planned. */
  readonly plan: ChargePlan | string;
  /** The limits as they were counted, with overrides; undefined when the counters do not answer. */
  readonly counted: SeenCounts | undefined;
  /** The policy whose rule has its own limits; undefined for a call of the API. */
  readonly policy?: Omit<Source, "kind"> | undefined;
  /** What is done instead, where the counters do not answer. */
  readonly uncounted?: SeenUncounted | undefined;
}

/** What a verification does without the shared counters, by the words of its caller. */
export interface SeenUncounted extends Pick<CompiledPolicy, "onCounterFailure" | "onCreditFailure"> {
  /** Every limit is decided in each process in any case, so that `onCounterFailure` is not asked. */
  readonly isAsync: boolean;
  /** What a process decides that counts alone and has counted nothing yet; undefined where none counts alone. */
  readonly alone: Consumed | undefined;
}

export interface SeenCounts {
  readonly limits: readonly LimitCharge[];
  readonly consumed: Consumed;
  /** By the place of the limit in `shared` of the plan. */
  readonly overrides: readonly (OverrideRecord | undefined)[];
  /** The names of namespaces, by id. */
  readonly namespaces: ReadonlyMap<string, string>;
}
