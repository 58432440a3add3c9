import type { IncomingHttpHeaders } from "node:http";
import { PublicError } from "../../core/errors.ts";
import { EVERY_WORKSPACE, grantsIn, roleIn } from "../../core/sessions/assignments.ts";
import type { Deps } from "../deps.ts";
import { readTokenCookie, SESSION_COOKIE } from "../sessions/cookies.ts";
import { foreignProblem } from "../sessions/own-origin.ts";
import { actorOf, findSignedIn, type SessionRules, type SignedIn } from "../sessions/signed-in.ts";
import type { RootKey } from "./auth.ts";
import { createGrants } from "./grants.ts";

/*
 * Handles calls by dashboard users (api-v2.md section 3.1), which have a session instead of a root key. The session is read only if there
 * is no `Authorization` header, so calls with a root key incur no cost.
 */

/** Session credentials of a call. */
export interface SessionSender {
  readonly token: string;
  /** Id or name of the workspace, from the header. */
  readonly workspace: string | undefined;
  /** Whether the dashboard page reports that its user was active recently. */
  readonly isAttended: boolean;
}

/** Data about a sender that the pipeline uses, the same for root keys and sessions. */
export type Sender = Pick<RootKey, "caller" | "grants" | "quotaPerMinute">;

const NAMED_WORKSPACE_LENGTH_MAX = 255;

/**
 * Returns the session of a call; `undefined` if it has no session cookie. Throws PublicError 403 `cross_origin_request` if a page of
 * another origin sent the call. A valid session does not prevent that, because browsers also send cookies with cross-site requests.
 */
export function readSessionSender(headers: IncomingHttpHeaders, rules: SessionRules): SessionSender | undefined {
  const token = readTokenCookie(headers.cookie, SESSION_COOKIE);
  if (token === undefined) return undefined;
  demandOwn(headers, rules);
  const workspace = headers["postern-workspace"];
  const isAttended = headers["postern-unattended"] === undefined;
  if (workspace === undefined) return { token, workspace, isAttended };
  if (typeof workspace !== "string" || workspace === "" || workspace.length > NAMED_WORKSPACE_LENGTH_MAX) {
    throw new PublicError("invalid_input", "The header Postern-Workspace is malformed.", {
      errors: [{ location: "header.Postern-Workspace", message: "expected the id or the name of a workspace" }],
    });
  }
  return { token, workspace, isAttended };
}

/** Throws PublicError 403 `cross_origin_request` if a page of another site might have sent the request. */
export function demandOwn(headers: IncomingHttpHeaders, rules: Pick<SessionRules, "address">): void {
  const problem = foreignProblem(headers, rules.address);
  if (problem === undefined) return;
  throw new PublicError("cross_origin_request", `The request does not come from the dashboard: ${problem}.`);
}

/**
 * Returns the person of a session, with the permissions in the workspace of the call. Throws PublicError: 401 `session_ended`; 403
 * `no_role` if the person has no role in the workspace; 403 if the workspace is disabled.
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

/**
 * Returns the error for a person without a role. It does not reveal whether the named workspace exists, because its name may be
 * confidential.
 */
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
