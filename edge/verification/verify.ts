import type { Query } from "../../core/permissions/query.ts";
import type { KeyRecord } from "../../core/records.ts";
import { checkKey } from "../../core/verification/check-key.ts";
import type { Code } from "../../core/verification/codes.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import { type ChargePlan, chargesAnything } from "../../core/verification/plan-charges.ts";
import type { Lookup } from "../projection/contract.ts";
import { type Counted, type CountingParts, count, type Uncountable, type WithoutStore } from "./count.ts";

/*
 * One verification of a key, for every caller: a rule of the gate, keys.verifyKey, and later ones. The steps
 * and their order are here (api-v2.md section 12):
 *
 *   find the key   may the caller know of it   check the key   plan the charges   count   the code
 *
 * What differs between callers is a `Verification`, an adapter with a few members. What a caller does with the verdict (an HTTP
 * status, a JSON body, an event) is its own.
 */

/** One caller's verification of one key. */
export interface Verification {
  /** Without it the API's IP allow-list is not checked. */
  readonly clientIp: string | undefined;
  /** The API that the key must be of: a key of another one is FORBIDDEN. Any when left out. */
  readonly apiId?: string | undefined;
  /** Whether the query is read only for a key that is otherwise good; else before anything is said of the key. */
  readonly readsQueryLast?: boolean;
  /** Finds the key: without a promise when it is cached, so that most verifications wait for nothing. */
  find(): Lookup<KeyView> | Promise<Lookup<KeyView>>;
  /** Whether the caller may know that this key exists. For most callers a key of another workspace or API is not found. */
  maySee(key: KeyRecord): boolean;
  /** The required permissions. Called only for a key that the caller may see; its errors go to the caller. */
  readQuery(): Query | undefined;
  /** The charges. Called only for a key that has passed every check; its errors go to the caller. */
  plan(view: KeyView): ChargePlan;
  /** What happens to a plan when the shared counters are unreachable. */
  withoutStore(plan: ChargePlan): WithoutStore;
}

export interface VerifyParts extends CountingParts {
  /** Clock of the shared store, Unix ms. */
  readonly nowMs: () => number;
}

export type Verdict =
  | {
      readonly kind: "decided";
      readonly code: Code;
      /** undefined for a key that does not exist, or that the caller may not know of. */
      readonly view: KeyView | undefined;
      /** undefined when nothing was counted: the key was refused before, or the plan was empty. */
      readonly counted: Counted | undefined;
    }
  /** Nothing is known about the key now: neither that it exists nor that it does not. */
  | { readonly kind: "unknown"; readonly reason: string }
  | Uncountable;

const NOT_FOUND: Verdict = { kind: "decided", code: "NOT_FOUND", view: undefined, counted: undefined };

/**
 * Returns without a promise when the key is cached and nothing is counted. Throws and rejects with the errors of `verification`,
 * and with our own faults; an unreachable store is a verdict.
 */
export function verify(parts: VerifyParts, verification: Verification): Verdict | Promise<Verdict> {
  const found = verification.find();
  return found instanceof Promise
    ? found.then((late) => decide(parts, verification, late))
    : decide(parts, verification, found);
}

/** A verification without the counting, for connections that stay open. */
export async function verifyAgain(parts: Pick<VerifyParts, "nowMs">, verification: Verification): Promise<Verdict> {
  return check(parts, verification, await verification.find());
}

function decide(parts: VerifyParts, verification: Verification, found: Lookup<KeyView>): Verdict | Promise<Verdict> {
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

/** All checks without the counting; `VALID` when the key passed. */
function check({ nowMs }: Pick<VerifyParts, "nowMs">, verification: Verification, found: Lookup<KeyView>): Verdict {
  if (found.status === "absent") return NOT_FOUND;
  if (found.status === "unusable") return { kind: "unknown", reason: found.reason };
  const view = found.value;
  // Another's key must look like one that does not exist, whatever else may be wrong with it.
  if (!verification.maySee(view.key)) return NOT_FOUND;
  // A deleted API comes before errors in the query.
  if (view.api === undefined) return NOT_FOUND;
  const query = verification.readsQueryLast === true ? () => verification.readQuery() : verification.readQuery();
  const { clientIp, apiId } = verification;
  const refusal = checkKey({ view, nowMs: nowMs(), clientIp, apiId, query });
  return { kind: "decided", code: refusal ?? "VALID", view, counted: undefined };
}
