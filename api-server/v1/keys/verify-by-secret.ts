import { performance } from "node:perf_hooks";
import { hashKey } from "../../../core/keys/key-string.ts";
import { type Verdict, verify } from "../../../edge/verification/verify.ts";
import { recordCall, remainingAfter, undecided } from "../../domain/keys/verified.ts";
import { ServerCounting } from "../../domain/ratelimits/counting.ts";
import { countQuota } from "../../domain/ratelimits/quota.ts";
import type { CachedValue } from "../../keys/hash-cache.ts";
import type { KeyHome } from "../../keys/key-owners.ts";
import type { DataJson, OpenCall } from "../../procedure.ts";
import { OpenVerification, workspaceDisabled } from "./open-verification.ts";
import { answerJson, notFoundJson } from "./verify-reply.ts";
import type { Body } from "./verify-schemas.ts";

/**
 * Verifies a key, given only its secret, and returns the response of `keys.verifyKey` (api-v1.md section 6.1). Returns synchronously for a
 * cached key without limits, credits and quota: customers call it for every request that they receive, and a promise would make it slower.
 */
export function verifyBySecret(call: OpenCall<Body>): DataJson | Promise<DataJson> {
  const startedMs = performance.now();
  const hash = hashKey(call.body.key);
  const home = call.deps.keyOwners.find(hash);
  return home instanceof Promise
    ? home.then((late) => verifyAt(call, { hash, home: late, startedMs }))
    : verifyAt(call, { hash, home, startedMs });
}

interface Presented {
  readonly hash: string;
  readonly home: CachedValue<KeyHome>;
  readonly startedMs: number;
}

/** Verifies a key in its workspace. The workspace's quota is charged for the call, as for calls with a root key. */
function verifyAt(call: OpenCall<Body>, { hash, home, startedMs }: Presented): DataJson | Promise<DataJson> {
  if (home === "absent") return notFoundJson(call.origin.requestId);
  const { workspaceId, quotaPerMinute } = home;
  if (quotaPerMinute === undefined) return verifyIn(call, { hash, workspaceId, startedMs });
  return countQuota(call.deps, { workspaceId, quotaPerMinute }).then(({ refusal }) => {
    if (refusal !== undefined) throw refusal;
    return verifyIn(call, { hash, workspaceId, startedMs });
  });
}

function verifyIn(
  call: OpenCall<Body>,
  { hash, workspaceId, startedMs }: { hash: string; workspaceId: string; startedMs: number },
): DataJson | Promise<DataJson> {
  const verification = new OpenVerification(call, { hash, workspaceId });
  const verdict = verify(new ServerCounting(call.deps), verification);
  return verdict instanceof Promise
    ? verdict.then((late) => respond(call, verification, late, startedMs))
    : respond(call, verification, verdict, startedMs);
}

function respond(
  { body, deps, origin }: OpenCall<Body>,
  { selected }: OpenVerification,
  verdict: Verdict,
  startedMs: number,
): DataJson | Promise<DataJson> {
  if (verdict.kind !== "decided") throw undecided(verdict);
  const { requestId } = origin;
  const { code, view, counted } = verdict;
  if (view === undefined) return notFoundJson(requestId);
  if (!view.workspace.enabled) throw workspaceDisabled();
  const outcomes = counted?.consumed?.limits;
  const finish = (remaining: number | undefined): DataJson => {
    recordCall(deps, view, { requestId, code, tags: body.tags, counted, startedMs });
    return answerJson(view, { code, requestId, limits: selected, outcomes, remaining });
  };
  // If a limit rejected the call, the credits are not read, because they were not charged: limits are charged first.
  if (counted === undefined || code === "RATE_LIMITED") return finish(undefined);
  const remaining = remainingAfter(deps, view, counted);
  return remaining instanceof Promise ? remaining.then(finish) : finish(remaining);
}
