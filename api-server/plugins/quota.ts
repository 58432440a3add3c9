import type { FastifyReply } from "fastify";
import { PublicError } from "../../core/errors.ts";
import { pushLimitHeaders, retryAtMs, showLimit, wholeSecondsUntil } from "../../core/ratelimits/limit-headers.ts";
import type { Deps } from "../deps.ts";
import { consumeQuota } from "../domain/ratelimits/counting.ts";

const WINDOW_MS = 60_000;

/**
 * Counts one request against the workspace's quota and sets the quota headers (api-v2.md section 2.1). When the counter
 * cannot be read, the request is admitted. Throws PublicError 429 for a request beyond the quota.
 */
export async function chargeQuota(
  deps: Deps,
  { workspaceId, quotaPerMinute }: { workspaceId: string; quotaPerMinute: number },
  reply: FastifyReply,
): Promise<void> {
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
  if (consumed === undefined || outcome === undefined) return;
  const headers: string[] = [];
  pushLimitHeaders(headers, showLimit(quotaPerMinute, outcome, consumed.nowMs));
  for (let at = 0; at < headers.length; at += 2) reply.header(headers[at] as string, headers[at + 1]);
  if (outcome.passed) return;
  throw new PublicError(
    "workspace_rate_limited",
    `The workspace has used up its quota of ${quotaPerMinute} requests per minute.`,
    { headers: { "Retry-After": String(wholeSecondsUntil(retryAtMs(outcome), consumed.nowMs)) } },
  );
}
