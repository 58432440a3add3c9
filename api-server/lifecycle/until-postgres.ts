import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { backoffMs } from "../../core/backoff.ts";
import { databaseProblem } from "../../postgres/failures.ts";
import { SchemaBehind } from "../db/migrate.ts";

const RETRY = { firstMs: 250, maxMs: 5_000, random: Math.random };
/** Minimum interval between two log lines, regardless of the number of attempts. */
const LOGGED_EVERY_MS = 60_000;

/** Reason why a starting component is not ready yet. The probes show it to anyone, so it must not reveal details. */
export const WAITING = {
  starting: "it is starting",
  postgres_unavailable: "Postgres does not answer",
  "postgres-refuses": "Postgres rejects the login of this server",
  "schema-behind": "the database is not migrated to this release yet",
} as const;

export type WaitingReason = keyof typeof WAITING;

/** Returns the `/readyz` response while waiting. */
export const waitingAnswer = (reason: WaitingReason): { status: number; body: object } => ({
  status: 503,
  body: { status: "not ready", reason, meaning: WAITING[reason] },
});

/**
 * Repeats `attempt` until it succeeds, as long as it fails only because Postgres cannot be used yet. `onWaiting` is called with the reason
 * after each such failure. Any other error of `attempt`, such as a failed migration, is rethrown.
 */
export async function untilPostgres<T>(
  attempt: () => Promise<T>,
  { log, onWaiting }: { log: Logger; onWaiting: (reason: WaitingReason) => void },
): Promise<T> {
  let logged: { reason: WaitingReason; atMs: number } | undefined;
  for (let failures = 1; ; failures++) {
    try {
      const started = await attempt();
      if (logged !== undefined) log.info("Postgres can be used");
      return started;
    } catch (error) {
      const reason = waitingReason(error);
      if (reason === undefined) throw error;
      onWaiting(reason);
      const nowMs = performance.now();
      if (logged?.reason !== reason || nowMs - logged.atMs > LOGGED_EVERY_MS) {
        log.warn({ err: error, reason, failures }, `not ready: ${WAITING[reason]}; trying again`);
        logged = { reason, atMs: nowMs };
      }
      await sleep(backoffMs(failures, RETRY));
    }
  }
}

function waitingReason(error: unknown): WaitingReason | undefined {
  if (error instanceof SchemaBehind) return "schema-behind";
  const problem = databaseProblem(error);
  if (problem === undefined) return undefined;
  return problem === "away" ? "postgres_unavailable" : "postgres-refuses";
}
