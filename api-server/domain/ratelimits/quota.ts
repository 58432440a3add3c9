import { PublicError } from "../../../core/errors.ts";
import { pushLimitHeaders, retryAtMs, secondsUntil, showLimit } from "../../../core/ratelimits/limit-headers.ts";
import type { CountingDeps } from "../deps.ts";
import { consumeQuota } from "./counting.ts";

const WINDOW_MS = 60_000;

export interface ChargedQuota {
  /** Headers for every response to the request, as alternating names and values; empty if the counter could not be read. */
  readonly headers: readonly string[];
  /** Error 429 if the request exceeds the quota, otherwise `undefined`. */
  readonly refusal: PublicError | undefined;
}

/** Counts one request against the workspace's quota (api-v2.md section 2.1). If the counter cannot be read, the request is admitted. */
export async function countQuota(
  deps: CountingDeps,
  { workspaceId, quotaPerMinute }: { readonly workspaceId: string; readonly quotaPerMinute: number },
): Promise<ChargedQuota> {
  const consumed = await consumeQuota(deps, {
    workspaceId,
    scope: { kind: "quota", value: workspaceId },
    identifier: workspaceId,
    limit: quotaPerMinute,
    durationMs: WINDOW_MS,
    cost: 1,
    accuracy: "strict",
  });
  const outcome = consumed?.limits[0];
  if (consumed === undefined || outcome === undefined) return { headers: [], refusal: undefined };
  const headers: string[] = [];
  pushLimitHeaders(headers, showLimit(quotaPerMinute, outcome, consumed.nowMs));
  if (outcome.passed) return { headers, refusal: undefined };
  const refusal = new PublicError(
    "workspace_rate_limited",
    `The workspace has used up its quota of ${quotaPerMinute} requests per minute.`,
    { retryAfterS: secondsUntil(retryAtMs(outcome), consumed.nowMs) },
  );
  return { headers, refusal };
}
