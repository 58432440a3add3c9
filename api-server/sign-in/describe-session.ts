import { PublicError } from "../../core/errors.ts";
import { isInstallationAdmin, namedWorkspaces, roleIn } from "../../core/sessions/assignments.ts";
import type { Session } from "../../core/sessions/session.ts";
import { listOpenSessions } from "../db/sessions.ts";
import { listEnterable } from "../db/workspaces.ts";
import type { Deps } from "../deps.ts";
import { findSignedIn, type SessionRules, type SignedIn } from "../sessions/signed-in.ts";

const WORKSPACES_MAX = 1000;
const SESSIONS_MAX = 100;

/**
 * Describes the caller's session. An ended session is not an error, because each open page calls this once a minute; `ended` contains the
 * reason.
 */
export async function describeSession(
  deps: Deps,
  rules: SessionRules,
  token: string,
): Promise<Session | { readonly ended: string }> {
  let signedIn: SignedIn;
  try {
    signedIn = await findSignedIn(deps, rules, { token, workspace: undefined, isAttended: false });
  } catch (error) {
    if (error instanceof PublicError && error.kind === "session_ended") return { ended: error.detail };
    throw error;
  }
  const { session, assignments } = signedIn;
  const { issuer, subject } = session;
  const nowMs = deps.nowMs();
  const named = namedWorkspaces(assignments);
  const workspaces = await listEnterable(deps.db, { named, rowsMax: WORKSPACES_MAX + 1 });
  const seenSince = nowMs - rules.times.idleMs;
  const sessions = await listOpenSessions(deps.db, { issuer, subject, nowMs, seenSince, rowsMax: SESSIONS_MAX });
  return {
    person: {
      name: session.name,
      email: session.email,
      signedInBy: session.signed_in_by,
      groups: session.groups,
    },
    workspaces: workspaces.slice(0, WORKSPACES_MAX).flatMap(({ id, name, enabled }) => {
      const role = roleIn(assignments, { id, name });
      return role === undefined ? [] : [{ id, name, enabled, role }];
    }),
    hasMoreWorkspaces: workspaces.length > WORKSPACES_MAX,
    isInstallationAdmin: isInstallationAdmin(assignments),
    sessions: sessions.map((row) => ({
      id: row.id,
      isThis: row.id === session.id,
      address: row.remote_ip,
      userAgent: row.user_agent,
      createdAt: row.created_at,
      lastSeenAt: row.last_seen_at,
      expiresAt: Math.min(row.expires_at, row.last_seen_at + rules.times.idleMs),
    })),
  };
}
