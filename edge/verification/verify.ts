import type { Query } from "../../core/permissions/query.ts";
import type { KeyRecord } from "../../core/records.ts";
import { checkKey } from "../../core/verification/check-key.ts";
import type { Code } from "../../core/verification/codes.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import { type ChargePlan, chargesAnything } from "../../core/verification/plan-charges.ts";
import type { Lookup, MaybePromise } from "../projection/contract.ts";
import { type Counted, type CountingDeps, count, type Uncountable, type WithoutStore } from "./count.ts";

/*
 * Verifies a key, for the gate and for `keys.verifyKey`. The steps and their order are defined here (api-v2.md section 12):
 *
 *   find the key   check that the caller may see it   check the key   plan the charges   count   return the code
 *
 * A `Verification` adapts this to one caller. Each caller turns the result into its own form (an HTTP status, a JSON body, an event).
 */

export interface Verification {
  /** Client address. If omitted, the API's IP allow-list does not apply. */
  readonly clientIp: string | undefined;
  /** API that the key must belong to; other keys are `FORBIDDEN`. Default: any API. */
  readonly apiId?: string | undefined;
  /**
   * Whether the query is read only for a key that passes all other checks. Default: the query is read first, so its errors are reported
   * before any result about the key.
   */
  readonly readsQueryLast?: boolean;
  /** Finds the key. Returns synchronously if the key is cached, so most verifications do not wait. */
  find(): MaybePromise<Lookup<KeyView>>;
  /** Returns whether the caller may see this key. Most callers get "not found" for a key of another workspace or API. */
  maySee(key: KeyRecord): boolean;
  /** Returns the required permissions. Called only for a key that the caller may see. Errors are passed on to the caller. */
  readQuery(): Query | undefined;
  /** Returns the charges. Called only for a key that has passed every check. Errors are passed on to the caller. */
  plan(view: KeyView): ChargePlan;
  /** Returns the fallback for the plan if the shared counters are unreachable. */
  withoutStore(plan: ChargePlan): WithoutStore;
}

export interface VerifyDeps extends CountingDeps {
  /** Returns the shared store's time, Unix ms. */
  readonly nowMs: () => number;
}

export type Verdict =
  | {
      readonly kind: "decided";
      readonly code: Code;
      /** View of the key; `undefined` if the key does not exist or the caller may not see it. */
      readonly view: KeyView | undefined;
      /** Charged limits and credits; `undefined` if nothing was charged, because the key was rejected earlier or the plan was empty. */
      readonly counted: Counted | undefined;
    }
  /** The source cannot be used, so it is unknown whether the key exists. */
  | { readonly kind: "unknown"; readonly reason: string }
  | Uncountable;

const NOT_FOUND: Verdict = { kind: "decided", code: "NOT_FOUND", view: undefined, counted: undefined };

/**
 * Verifies a key. Returns synchronously if the key is cached and the plan is empty. Throws the errors of `verification`, and internal
 * errors. An unreachable store is a result, not an error.
 */
export function verify(parts: VerifyDeps, verification: Verification): MaybePromise<Verdict> {
  const found = verification.find();
  return found instanceof Promise
    ? found.then((late) => decide(parts, verification, late))
    : decide(parts, verification, found);
}

/** Repeats a verification without counting, for connections that are still open. */
export async function verifyAgain(parts: Pick<VerifyDeps, "nowMs">, verification: Verification): Promise<Verdict> {
  return check(parts, verification, await verification.find());
}

function decide(parts: VerifyDeps, verification: Verification, found: Lookup<KeyView>): MaybePromise<Verdict> {
  const checked = check(parts, verification, found);
  if (checked.kind !== "decided" || checked.code !== "VALID" || checked.view === undefined) return checked;
  const { view } = checked;
  const plan = verification.plan(view);
  if (!chargesAnything(plan)) return checked;
  return count(parts, { plan, withoutStore: verification.withoutStore(plan) }).then(
    (counted): Verdict =>
      counted.kind === "counted" ? { kind: "decided", code: counted.code, view, counted } : counted,
  );
}

/** Runs all checks except counting. Returns `VALID` if the key passed. */
function check({ nowMs }: Pick<VerifyDeps, "nowMs">, verification: Verification, found: Lookup<KeyView>): Verdict {
  if (found.status === "absent") return NOT_FOUND;
  if (found.status === "unusable") return { kind: "unknown", reason: found.reason };
  const view = found.value;
  // A key of another owner must be indistinguishable from a missing key, so this check comes first.
  if (!verification.maySee(view.key)) return NOT_FOUND;
  // Reports a deleted API before errors in the query.
  if (view.api === undefined) return NOT_FOUND;
  const query = verification.readsQueryLast === true ? () => verification.readQuery() : verification.readQuery();
  const { clientIp, apiId } = verification;
  const refusal = checkKey({ view, nowMs: nowMs(), clientIp, apiId, query });
  return { kind: "decided", code: refusal ?? "VALID", view, counted: undefined };
}
