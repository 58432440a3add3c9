import type { IncomingHttpHeaders } from "node:http";
import { PublicError } from "../../core/errors.ts";
import { EVERY_WORKSPACE, grantsIn, roleIn } from "../../core/sessions/assignments.ts";
import type { Deps } from "../deps.ts";
import { actorOf } from "../sessions/actor.ts";
import { readTokenCookie, SESSION_COOKIE } from "../sessions/cookies.ts";
import { foreignProblem } from "../sessions/own-origin.ts";
import { findSignedIn, type SessionRules, type SignedIn } from "../sessions/signed-in.ts";
import type { RootKey } from "./auth.ts";
import { createGrants } from "./grants.ts";

/*
 * Calls of persons (api-v2.md section 3.1): a session in the place of a root key. It is looked at only where there is no Authorization header, so
 * that a call with a root key costs no more than before.
 */

/** What a call with a session brings. */
export interface SessionSender {
  readonly token: string;
  /** Id or name, as the header has it. */
  readonly workspace: string | undefined;
  /** Whether somebody sits before the page, as far as it can tell. */
  readonly isAttended: boolean;
}

/** What the pipeline needs to know of a sender, whichever it is. */
export type Sender = Pick<RootKey, "caller" | "grants" | "quotaPerMinute">;

const NAMED_WORKSPACE_LENGTH_MAX = 255;

/**
 * The session that a call comes with; undefined when it has no cookie of ours. Throws PublicError, 403 `foreign_request`, when it was not the
 * dashboard that sent it, whatever the session: browsers send cookies along for other sites, too.
 */
export function readSessionSender(headers: IncomingHttpHeaders, rules: SessionRules): SessionSender | undefined {
  const token = readTokenCookie(headers.cookie, SESSION_COOKIE);
  if (token === undefined) return undefined;
  demandOwn(headers, rules);
  const workspace = headers["postern-workspace"];
  const isAttended = headers["postern-unattended"] === undefined;
  if (workspace === undefined) return { token, workspace, isAttended };
  if (typeof workspace !== "string" || workspace === "" || workspace.length > NAMED_WORKSPACE_LENGTH_MAX) {
    throw new PublicError("invalid_input", "The header Postern-Workspace is not of its form.", {
      errors: [{ location: "header.Postern-Workspace", message: "expected the id or the name of a workspace" }],
    });
  }
  return { token, workspace, isAttended };
}

/** Throws PublicError, 403 `foreign_request`, for a request that a page of another site may have sent. */
export function demandOwn(headers: IncomingHttpHeaders, rules: Pick<SessionRules, "address">): void {
  const problem = foreignProblem(headers, rules.address);
  if (problem === undefined) return;
  throw new PublicError("foreign_request", `The request does not come from the dashboard: ${problem}.`);
}

/**
 * The person behind a session, with what it may do in the workspace of the call. Throws PublicError: 401 `session_ended`; 403 `no_role` without a role there; 403
 * when the workspace is disabled.
 */
export async function findSessionCaller(
  deps: Pick<Deps, "db" | "nowMs">,
  rules: SessionRules,
  sender: SessionSender,
): Promise<Sender> {
  const signedIn = await findSignedIn(deps, rules, sender);
  const { session, assignments, workspace } = signedIn;
  const role = workspace && roleIn(assignments, workspace);
  const held = workspace && grantsIn(assignments, workspace);
  if (workspace === undefined || role === undefined || held === undefined) throw noRole(signedIn, sender.workspace);
  if (!workspace.enabled) throw new PublicError("forbidden", "The workspace is disabled.");
  return {
    caller: {
      workspaceId: workspace.id,
      actor: actorOf(session),
      session: { row: session, idleMs: rules.times.idleMs, assignments, role },
    },
    grants: createGrants(new Set(held), `The role ${role}`),
    quotaPerMinute: workspace.quotaPerMinute,
  };
}

const GROUPS_SHOWN = 50;

/** Whether a workspace that was named exists is not said: its name may be a secret of others. */
function noRole({ session, assignments }: SignedIn, named: string | undefined): PublicError {
  if (named !== undefined) {
    return new PublicError("no_role", `${session.name} has no role in the workspace ${named}.`);
  }
  if (assignments.some(({ workspace }) => workspace === EVERY_WORKSPACE)) {
    return new PublicError("no_role", "There is no workspace yet.");
  }
  const seen = session.groups.slice(0, GROUPS_SHOWN).join(", ");
  const more = session.groups.length > GROUPS_SHOWN ? ` and ${session.groups.length - GROUPS_SHOWN} more` : "";
  const groups = session.groups.length === 0 ? "The provider named no groups." : `Groups seen: ${seen}${more}.`;
  return new PublicError("no_role", `${session.name} has no role in any workspace. ${groups}`);
}
