import type { CallingActor } from "../db/audit.ts";
import type { SessionRow } from "../db/sessions.ts";

/** Returns the audit log's actor for a person: how the session was created, and its id, never its token. */
export const actorOf = ({
  id,
  issuer,
  subject,
  name,
}: Pick<SessionRow, "id" | "issuer" | "subject" | "name">): CallingActor & { readonly type: "user" } => ({
  type: "user",
  id: subject,
  name,
  meta: { issuer, session: id },
});
