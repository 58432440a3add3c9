import type { FastifyReply } from "fastify";
import { PublicError } from "../../core/errors.ts";
import { CountersUnavailable } from "../../edge/counters/contract.ts";
import type { Deps } from "../deps.ts";
import { noteRarely } from "../domain/note-rarely.ts";

const WINDOW_MS = 60_000;

/**
 * Counts one request against the workspace's quota and tells the client where it stands (api-v2.md section 2.1). When the counter
 * cannot be read, the request is let through. Throws PublicError 429 for a request too many.
 */
export async function chargeQuota(
  deps: Pick<Deps, "counters" | "log">,
  { workspaceId, quotaPerMinute }: { workspaceId: string; quotaPerMinute: number },
  reply: FastifyReply,
): Promise<void> {
  const consumed = await consume(deps, workspaceId, quotaPerMinute);
  const outcome = consumed?.limits[0];
  if (consumed === undefined || outcome === undefined) return;
  const secondsUntil = (atMs: number): number => Math.max(0, Math.ceil((atMs - consumed.nowMs) / 1000));
  reply.header("RateLimit-Limit", String(quotaPerMinute));
  reply.header("RateLimit-Remaining", String(outcome.remaining));
  reply.header("RateLimit-Reset", String(secondsUntil(outcome.resetMs)));
  if (outcome.passed) return;
  // A quota of 0 never admits anything: the end of the window is as good a time as any to look again.
  const retryAtMs = Number.isFinite(outcome.retryAtMs) ? (outcome.retryAtMs ?? outcome.resetMs) : outcome.resetMs;
  throw new PublicError(
    "workspace_rate_limited",
    `The workspace has used up its quota of ${quotaPerMinute} requests per minute.`,
    { headers: { "Retry-After": String(Math.max(1, secondsUntil(retryAtMs))) } },
  );
}

async function consume({ counters, log }: Pick<Deps, "counters" | "log">, workspaceId: string, limit: number) {
  try {
    return await counters.consume({
      limits: [
        {
          workspaceId,
          scope: { kind: "quota", value: workspaceId },
          identifier: workspaceId,
          limit,
          durationMs: WINDOW_MS,
          cost: 1,
          accuracy: "strict",
        },
      ],
    });
  } catch (error) {
    if (!(error instanceof CountersUnavailable)) throw error;
    noteRarely(
      { counters, log },
      { reason: error.message, message: "quotas not counted: the shared counters are away" },
    );
    return undefined;
  }
}
