import type { CallingActor } from "../store/audit.ts";
import type { SessionRow } from "../store/sessions.ts";

/** How the audit log names a person: what the session was made with, and which session it was, never its token. */
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
