import { performance } from "node:perf_hooks";
import type { KeyView } from "../../../core/verification/key-view.ts";
import { type Verdict, verify } from "../../../edge/verification/verify.ts";
import { isDatabaseUnavailable } from "../../../postgres/failures.ts";
import { recordCall, remainingAfter, undecided } from "../../domain/keys/verified.ts";
import { ServerCounting } from "../../domain/ratelimits/counting.ts";
import { type Call, type DataJson, defineProcedure } from "../../procedure.ts";
import { KeyVerification, VERIFY_KEY } from "./key-verification.ts";
import { NOT_FOUND, toDataJson } from "./verify-reply.ts";
import { Body, Data } from "./verify-schemas.ts";

const required = { verifyKey: VERIFY_KEY };

export const verifyKey = defineProcedure({
  path: "keys.verifyKey",
  effect: "read",
  isHot: true,
  summary: "Verify a key",
  description:
    "The status is always 200 with a code: an invalid key is an outcome, not an error. Charges either all rate limits or none, and then credits.",
  permissions: required,
  errors: ["permissions_query_syntax_error", "precondition_failed"],
  body: Body,
  data: Data,
  handle,
});

/**
 * Handles a call. Returns synchronously for a cached key without limits and credits: customers make this call for every request that they
 * receive, and a promise would make it slower.
 */
function handle(call: Call<Body, typeof required>): DataJson | Promise<DataJson> {
  const startedMs = performance.now();
  // Checks the permission before looking up the key, so that the error reveals nothing about it.
  if (!call.holdsForSome(required.verifyKey)) call.require(required.verifyKey);
  const verification = new KeyVerification(call);
  const verdict = verify(new ServerCounting(call.deps), verification);
  return verdict instanceof Promise
    ? verdict.then((late) => respond(call, verification, late, startedMs))
    : respond(call, verification, verdict, startedMs);
}

function respond(
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
  const { body, deps, origin } = call;
  const finish = (credits: number | undefined): DataJson => {
    recordCall(deps, view, { requestId: origin.requestId, code, tags: body.tags, counted, startedMs });
    return toDataJson(view, { code, limits, outcomes, credits });
  };
  const remaining = findRemaining(call, view, verdict);
  return remaining instanceof Promise ? remaining.then(finish) : finish(remaining);
}

/** Returns the remaining credits of the key; `undefined` if the key is unlimited. Every response contains them. */
function findRemaining(
  { deps }: Call<Body>,
  view: KeyView,
  { counted }: Verdict & { kind: "decided" },
): number | undefined | Promise<number | undefined> {
  if (counted !== undefined) return remainingAfter(deps, view, counted);
  const { limited, workspaceId, keyId } = view.key;
  if (!limited) return undefined;
  // The call was rejected before credits were charged, so the credits did not affect the decision and are only informative. The response
  // omits them if they cannot be read.
  return deps.credits.readRemaining({ workspaceId, keyId }).catch((error: unknown) => {
    if (isDatabaseUnavailable(error)) return undefined;
    throw error;
  });
}
