import type { CompiledRule } from "../../core/policies/match-rule.ts";
import { checkKey } from "../../core/verification/check-key.ts";
import type { Code } from "../../core/verification/codes.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import type { ShownLimit } from "../http/answers.ts";
import type { PolicyInForce } from "../policy/in-force.ts";
import { type Charges, planCharges } from "./charges.ts";
import { type CountingParts, count } from "./counting.ts";
import { judgeFreshness } from "./freshness.ts";

/*
 * A rule is a keys.verifyKey call made by the pod. This is that call: the key's record (from the cache, else from the
 * store), the decision of core/, and the counters. With a cached key and nothing to count it answers at once, without a
 * promise; that is the way of most requests.
 */

export type Verdict =
  | {
      readonly code: Code;
      /** The key, unless it is unknown here. */
      readonly view: KeyView | undefined;
      readonly shown: ShownLimit | undefined;
      readonly retryAfterS: number | undefined;
      readonly spentCredits: number;
    }
  /** Nothing can be said of the key now, and why. */
  | { readonly code: undefined; readonly unavailable: string };

export interface Verification {
  readonly inForce: PolicyInForce;
  readonly rule: CompiledRule;
  /** Base64 SHA-256 of the key. */
  readonly hash: string;
  readonly clientIp: string | undefined;
}

export interface VerifyParts extends CountingParts {
  readonly workspaceId: string;
  /** Clock of the shared store, Unix ms: a pod's own is not trusted. */
  readonly nowMs: () => number;
  readonly onDeparted: () => void;
}

const NOT_FOUND: Verdict = refusal("NOT_FOUND", undefined);
const TOO_OLD: Verdict = { code: undefined, unavailable: "What the gate knows of API keys is too old." };
const NO_RECORD: Verdict = { code: undefined, unavailable: "The gate cannot look the API key up now." };

export function verify(parts: VerifyParts, verification: Verification): Verdict | Promise<Verdict> {
  const found = peek(parts, verification);
  if (found === undefined) return findAndVerify(parts, verification);
  return "key" in found ? verifyView(parts, verification, found) : found;
}

/**
 * What a connection that stays open is asked again: all of the above but the counters, which have been charged.
 * `Unknown`: the key cannot be looked up now, which is no reason to cut anybody off before all knowledge is too old.
 */
export async function recheck(parts: VerifyParts, verification: Verification): Promise<Code | "TooOld" | "Unknown"> {
  const found = peek(parts, verification) ?? (await find(parts, verification));
  if ("key" in found) return checkView(parts, verification, found);
  if (found === TOO_OLD) return "TooOld";
  return found.code ?? "Unknown";
}

/** The cached key, a verdict that needs none, or undefined when the key has to be looked up. */
function peek(parts: VerifyParts, { inForce, hash }: Verification): KeyView | Verdict | undefined {
  const freshness = judgeFreshness(inForce.policy.onStale, parts.projection.stalenessMs());
  if (freshness === "Denied") return TOO_OLD;
  if (freshness === "Departed") parts.onDeparted();
  return parts.projection.peekKey(parts.workspaceId, hash);
}

async function find(parts: VerifyParts, { inForce, hash }: Verification): Promise<KeyView | Verdict> {
  const lookup = await parts.projection.findKey(parts.workspaceId, hash);
  if (lookup.status === "found") return lookup.value;
  if (lookup.status === "unusable") return NO_RECORD;
  // Absence is believed only while the promise holds: a key may have been made since.
  return judgeFreshness(inForce.policy.onStale, parts.projection.stalenessMs()) === "Fresh" ? NOT_FOUND : NO_RECORD;
}

async function findAndVerify(parts: VerifyParts, verification: Verification): Promise<Verdict> {
  const found = await find(parts, verification);
  return "key" in found ? verifyView(parts, verification, found) : found;
}

/** Everything that is not counted. */
function checkView(parts: VerifyParts, { inForce, rule, clientIp }: Verification, view: KeyView): Code {
  // Another API's key must not be told from one that does not exist, whatever else may be wrong with it.
  if (view.key.workspaceId !== parts.workspaceId || view.key.apiId !== inForce.policy.apiId) return "NOT_FOUND";
  return checkKey({ view, nowMs: parts.nowMs(), clientIp, query: rule.query }) ?? "VALID";
}

function verifyView(parts: VerifyParts, verification: Verification, view: KeyView): Verdict | Promise<Verdict> {
  const code = checkView(parts, verification, view);
  if (code === "NOT_FOUND") return NOT_FOUND;
  if (code !== "VALID") return refusal(code, view);
  const { inForce, rule } = verification;
  const plan = planFor(inForce, view, rule);
  return plan.charges === undefined ? plan.valid : countAndSettle(parts, inForce, view, plan.charges);
}

function countAndSettle(
  parts: VerifyParts,
  { policy }: PolicyInForce,
  view: KeyView,
  charges: Charges,
): Promise<Verdict> {
  return count(parts, policy, parts.workspaceId, charges).then((settled) => {
    if ("unavailable" in settled) return { code: undefined, unavailable: settled.unavailable };
    const { code, shown, retryAfterS, spentCredits } = settled;
    return { code, view, shown, retryAfterS, spentCredits };
  });
}

function refusal(code: Code, view: KeyView | undefined): Verdict {
  return { code, view, shown: undefined, retryAfterS: undefined, spentCredits: 0 };
}

export interface Plan {
  /** undefined: nothing is counted. */
  readonly charges: Charges | undefined;
  readonly valid: Verdict;
}

/** Made once per key record and rule. Both are immutable, and are forgotten together with the plan. */
function planFor(inForce: PolicyInForce, view: KeyView, rule: CompiledRule): Plan {
  let plans = inForce.plans.get(view);
  if (plans === undefined) {
    plans = new Map();
    inForce.plans.set(view, plans);
  }
  let plan = plans.get(rule);
  if (plan === undefined) {
    const charges = planCharges(view, rule, { audit: inForce.policy.mode === "Audit" });
    const counts = charges.named.length > 0 || charges.shared.length > 0 || charges.credits !== undefined;
    plan = { charges: counts ? charges : undefined, valid: refusal("VALID", view) };
    plans.set(rule, plan);
  }
  return plan;
}
