import { PublicError } from "../../core/errors.ts";
import { hashKey } from "../../core/keys/key-string.ts";
import { EVERY_WORKSPACE } from "../../core/sessions/assignments.ts";
import { takeSignInLink } from "../db/sign-in-links.ts";
import { inTransaction } from "../db/transaction.ts";
import type { Origin } from "../domain/actor.ts";
import { LINK_ISSUER } from "../domain/administration/sign-in-links.ts";
import { openSession } from "./open-session.ts";
import type { SignInDeps } from "./settings.ts";

/**
 * Opens a session with a link, and consumes the link. Throws PublicError 401 `sign_in_failed`, with the same text for every problem with
 * the link.
 */
export async function signInByLink(
  { deps, rules, bounds, failed }: Pick<SignInDeps, "deps" | "rules" | "bounds" | "failed">,
  { token, oldToken, origin }: { token: string; oldToken: string | undefined; origin: Origin },
): Promise<string> {
  const session = await inTransaction(deps, async (tx) => {
    const link = await takeSignInLink(tx, { tokenHash: hashKey(token), nowMs: deps.nowMs() });
    if (link === undefined) return undefined;
    const roles = [{ workspace: link.workspace_id ?? EVERY_WORKSPACE, role: link.role }];
    const person = {
      issuer: LINK_ISSUER,
      subject: link.name,
      name: link.name,
      email: null,
      signedInBy: "link" as const,
      groups: [],
      roles,
      assignments: roles,
      linkMadeBy: link.created_by,
      how: `by the link ${link.id} that ${link.created_by} made`,
    };
    const endsBy = link.session_expires_at ?? undefined;
    return openSession(tx, { deps, times: rules.times, person, oldToken, origin, endsBy });
  });
  if (session !== undefined) return session;
  bounds.failed(origin.clientIp);
  await failed.note("link", origin);
  throw new PublicError(
    "sign_in_failed",
    "The link was already used, has expired, or is incomplete. Ask an admin for another one, or create one with `postern dashboard link`.",
    { headers: { "WWW-Authenticate": "Bearer" } },
  );
}
