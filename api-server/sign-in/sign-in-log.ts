import { type Assignment, namedWorkspaces } from "../../core/sessions/assignments.ts";
import { DEFAULT_WORKSPACE } from "../../core/workspaces/workspace.ts";
import type { Queryable } from "../../postgres/queryable.ts";
import { type AuditActor, type AuditContext, type AuditEvent, insertAuditEvents } from "../db/audit.ts";
import type { SessionRow } from "../db/sessions.ts";
import { inTransaction } from "../db/transaction.ts";
import { findWorkspace, listEnterable } from "../db/workspaces.ts";
import type { Deps } from "../deps.ts";
import type { Origin } from "../domain/actor.ts";
import { actorOf } from "../sessions/signed-in.ts";

/*
 * Writes sign-ins and sign-outs to the audit log. Each workspace has its own log, and a person may have access to many: the row is written
 * to the log of each workspace in the person's assignments, or to that of the workspace `default` if the person can enter all workspaces,
 * or none.
 */

const WORKSPACES_MAX = 20;

/** Writes the sign-in or sign-out of a person. */
export async function logOfPerson(
  tx: Queryable,
  {
    deps,
    origin,
    session,
    assignments,
    event,
  }: {
    deps: Pick<Deps, "nowMs" | "randomBytes">;
    origin: Origin;
    session: SessionRow | Parameters<typeof actorOf>[0];
    assignments: readonly Assignment[];
    event: Pick<AuditEvent, "event" | "description">;
  },
): Promise<void> {
  const targets = [{ type: "session" as const, id: session.id, name: session.name }];
  const context = contextOf(deps, { actor: actorOf(session), origin });
  for (const workspaceId of await workspacesOf(tx, assignments)) {
    await insertAuditEvents(tx, { ...context, workspaceId }, [{ ...event, targets }]);
  }
}

const contextOf = (
  { nowMs, randomBytes }: Pick<Deps, "nowMs" | "randomBytes">,
  { actor, origin }: { actor: AuditActor; origin: Origin },
): Omit<AuditContext, "workspaceId"> => ({
  actor,
  timeMs: nowMs(),
  remoteIp: origin.clientIp,
  userAgent: origin.userAgent,
  requestId: origin.requestId,
  randomBytes,
});

async function workspacesOf(db: Queryable, assignments: readonly Assignment[]): Promise<string[]> {
  const named = namedWorkspaces(assignments);
  const rows = named === "all" ? [] : await listEnterable(db, { named, rowsMax: WORKSPACES_MAX });
  if (rows.length > 0) return rows.map(({ id }) => id);
  const first = await findWorkspace(db, { workspace: DEFAULT_WORKSPACE });
  return first === undefined ? [] : [first.id];
}

/** Reasons for failed sign-ins. This is a closed list, so that clients cannot influence the number of rows. */
export const FAILURES = {
  link: "the link was already used, has expired or never existed",
  state: "the sign-in was not started in this browser, or has already ended",
  denied: "the provider refused",
  provider: "the provider did not answer",
  token: "the provider's response was not valid",
} as const;
export type Failure = keyof typeof FAILURES;

const ROW_EVERY_MS = 60_000;

/**
 * Writes failed sign-ins: at most one row per reason, minute and process, with the number of failures since the last row. An attack can
 * therefore neither fill the log nor keep Postgres busy.
 */
export class FailedSignIns {
  readonly #deps: Deps;
  readonly #counts = new Map<Failure, { unsaid: number; dueAtMs: number }>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  async note(failure: Failure, origin: Origin): Promise<void> {
    const deps = this.#deps;
    const now = performance.now();
    const known = this.#counts.get(failure);
    if (known !== undefined && now < known.dueAtMs) {
      known.unsaid += 1;
      return;
    }
    const unsaid = known?.unsaid ?? 0;
    this.#counts.set(failure, { unsaid: 0, dueAtMs: now + ROW_EVERY_MS });
    const others = unsaid === 0 ? "" : `; ${unsaid} more since the last row for this reason`;
    const event: AuditEvent = {
      event: "session.refuse",
      description: `A sign-in failed: ${FAILURES[failure]}${others}`,
      targets: [],
    };
    const actor: AuditActor = { type: "user", id: "unknown", name: "unknown" };
    await inTransaction(deps, async (tx) => {
      const context = contextOf(deps, { actor, origin });
      for (const workspaceId of await workspacesOf(tx, [])) {
        await insertAuditEvents(tx, { ...context, workspaceId }, [event]);
      }
    });
  }
}
