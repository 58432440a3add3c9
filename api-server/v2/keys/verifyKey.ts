import { performance } from "node:perf_hooks";
import { PublicError } from "../../../core/errors.ts";
import type { Code } from "../../../core/verification/codes.ts";
import type { KeyView } from "../../../core/verification/key-view.ts";
import type { Uncountable } from "../../../edge/verification/count.ts";
import { recordVerification } from "../../../edge/verification/record.ts";
import { type Verdict, verify } from "../../../edge/verification/verify.ts";
import { ServerCounting } from "../../domain/ratelimits/counting.ts";
import { type Call, type DataJson, defineProcedure } from "../../procedure.ts";
import { isDatabaseUnavailable } from "../../store/failures.ts";
import { KeyVerification, VERIFY_KEY } from "./key-verification.ts";
import { NOT_FOUND, toDataJson } from "./verify-reply.ts";
import { Body, Data } from "./verify-schemas.ts";

const needed = { verifyKey: VERIFY_KEY };

export const verifyKey = defineProcedure({
  path: "keys.verifyKey",
  effect: "read",
  summary: "Decide whether a key may be used",
  description:
    "Always answers 200 with a code: a key that may not be used is an outcome and not an error. Charges rate limits (all or none of them) and, last, credits.",
  permissions: needed,
  errors: ["permissions_query_syntax_error", "precondition_failed"],
  body: Body,
  data: Data,
  handle,
});

/** For a cached key without limits and credits it returns without a promise, because customers call it with every request. */
function handle(call: Call<Body, typeof needed>): DataJson | Promise<DataJson> {
  const startedMs = performance.now();
  // Before the lookup, so that the refusal reveals nothing about the key.
  if (!call.holdsForSome(needed.verifyKey)) call.require(needed.verifyKey);
  const verification = new KeyVerification(call);
  const verdict = verify(new ServerCounting(call.deps), verification);
  return verdict instanceof Promise
    ? verdict.then((late) => answer(call, verification, late, startedMs))
    : answer(call, verification, verdict, startedMs);
}

function answer(
  call: Call<Body>,
  { selected }: KeyVerification,
  verdict: Verdict,
  startedMs: number,
): DataJson | Promise<DataJson> {
  if (verdict.kind !== "decided") throw undecided(verdict);
  const { code, view, counted } = verdict;
  if (view === undefined) return NOT_FOUND;
  const outcomes = counted?.consumed?.limits;
  const limits = outcomes === undefined ? undefined : selected;
  const finish = (credits: number | undefined): DataJson => {
    record(call, view, { code, spentCredits: counted?.spentCredits ?? 0, startedMs });
    return toDataJson(view, { code, limits, outcomes, credits });
  };
  const remaining = findRemaining(call, view, verdict);
  return remaining instanceof Promise ? remaining.then(finish) : finish(remaining);
}

/** The remaining credits of the key, which every response shows; undefined when they are unlimited. */
function findRemaining(
  { deps }: Call<Body>,
  { key: { limited, workspaceId, keyId } }: KeyView,
  { counted }: Verdict & { kind: "decided" },
): number | undefined | Promise<number | undefined> {
  if (!limited) return undefined;
  if (counted === undefined) {
    // Refused before credits were reached. The decision needs no database; the credits, which are only information, are left out.
    return deps.credits.readRemaining({ workspaceId, keyId }).catch((error: unknown) => {
      if (isDatabaseUnavailable(error)) return undefined;
      throw error;
    });
  }
  const credits = counted.consumed?.credits;
  if (credits === undefined || credits.status === "unknown") return undefined;
  return credits.remaining ?? deps.credits.readRemaining({ workspaceId, keyId });
}

const NO_TAGS: readonly string[] = [];

function record(
  { body, deps, origin }: Call<Body>,
  view: KeyView,
  { code, spentCredits, startedMs }: { readonly code: Code; readonly spentCredits: number; readonly startedMs: number },
): void {
  recordVerification(deps, view, {
    // One verification per request: its id is as unique as an event's must be.
    id: origin.requestId,
    requestId: origin.requestId,
    timeMs: deps.nowMs(),
    outcome: code,
    tags: body.tags ?? NO_TAGS,
    spentCredits,
    latencyMs: Math.round((performance.now() - startedMs) * 1000) / 1000,
  });
}

function undecided(verdict: Uncountable | (Verdict & { kind: "unknown" })): unknown {
  if (verdict.kind === "unknown") {
    const cause = new Error(verdict.reason);
    return new PublicError("service_unavailable", "The key cannot be looked up now.", { cause });
  }
  return verdict.cause ?? new PublicError("service_unavailable", "The credits of the key cannot be counted now.");
}
