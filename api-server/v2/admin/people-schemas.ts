import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { PERSON_ROLES } from "../../../core/permissions/person-roles.ts";
import { isInstallationAdmin, roleIn } from "../../../core/sessions/assignments.ts";
import type { PersonRow, PersonSessionRow } from "../../db/people.ts";
import { assignmentsOf } from "../../db/sessions.ts";
import type { Deps } from "../../deps.ts";
import type { PeopleScope } from "../../domain/administration/people.ts";
import { PERSON_NAME_LENGTH_MAX } from "../../domain/administration/sign-in-links.ts";
import { unixMs } from "../schemas.ts";

/* Shared fields of the procedures about people and sign-in links (api-v2.md section 24.4). */

export const SessionId = z
  .string()
  .min(3)
  .max(255)
  .regex(/^[a-zA-Z0-9_]+$/)
  .describe("Id of a session, not its token.")
  .meta({ examples: ["ses_7Rt5Vw3Xy1Za9BcD"] });

export const LinkId = z
  .string()
  .min(3)
  .max(255)
  .regex(/^[a-zA-Z0-9_]+$/)
  .describe("Id of the sign-in link, not its token.")
  .meta({ examples: ["sil_2Bc4Df6Gh8Jk0LmN"] });

export const PersonName = z
  .string()
  .min(1)
  .max(PERSON_NAME_LENGTH_MAX)
  .regex(/\S/)
  .describe("Name of the person, as shown in the audit log.")
  .meta({ examples: ["Ada Lovelace"] });

export const Role = z.enum(PERSON_ROLES).describe("Role in the workspace.");

export const AllWorkspaces = z.boolean().describe("Whether the role applies to all workspaces.");

const MadeBy = z
  .string()
  .describe("Who created the sign-in link; omitted if the person signed in with an OpenID provider.")
  .meta({ examples: ["Grace Hopper"] });

/** Maximum number of groups that a response shows. */
const GROUPS_SHOWN = 50;

export const PersonOut = z.strictObject({
  sessionId: SessionId.describe("Id of the newest open session. Other procedures use it to identify the person."),
  name: PersonName,
  email: z
    .string()
    .optional()
    .describe("E-mail address according to the OpenID provider.")
    .meta({ examples: ["ada@example.com"] }),
  subject: z
    .string()
    .describe("The person's id at the OpenID provider, or their name if they signed in with a link.")
    .meta({ examples: ["248289761001"] }),
  signedInBy: z.enum(["link", "oidc"]).describe("Sign-in method."),
  linkMadeBy: MadeBy.optional(),
  role: Role.describe("Highest role in the workspace, according to the current roles file."),
  allWorkspaces: z.boolean().describe("Whether the person is an admin of all workspaces."),
  groups: z
    .array(z.string().meta({ examples: ["platform-team"] }))
    .describe(`Groups that give a role in the workspace, up to ${GROUPS_SHOWN}.`),
  sessions: z
    .int()
    .describe("Number of open sessions with a role in the workspace.")
    .meta({ examples: [2] }),
  lastSeenAt: unixMs("When a session was last used, Unix milliseconds, to the minute."),
});
export type PersonOut = z.input<typeof PersonOut>;

export const SessionOut = z.strictObject({
  sessionId: SessionId,
  isCaller: z.boolean().describe("Whether this call was made with the session."),
  elsewhere: z
    .boolean()
    .describe(
      "Whether the caller cannot end the session, because it gives a role in a workspace that the caller does not administer.",
    ),
  address: z
    .string()
    .optional()
    .describe("Client address at sign-in.")
    .meta({ examples: ["10.0.0.1"] }),
  userAgent: z
    .string()
    .optional()
    .describe("`User-Agent` header at sign-in.")
    .meta({ examples: ["Mozilla/5.0"] }),
  linkMadeBy: MadeBy.optional(),
  role: Role,
  createdAt: unixMs("When the person signed in, Unix milliseconds."),
  lastSeenAt: unixMs("When the session was last used, Unix milliseconds, to the minute."),
  expires: unixMs("When the session ends if it is not used again, Unix milliseconds."),
});
export type SessionOut = z.input<typeof SessionOut>;

type RolesDeps = Pick<Deps, "rolesOfGroups">;

export function toPersonOut(
  row: Omit<PersonRow, "sort_name">,
  { workspace }: Pick<PeopleScope, "workspace">,
  { rolesOfGroups }: RolesDeps,
): PersonOut {
  const assignments = [...row.roles, ...rolesOfGroups(row.groups)];
  return {
    sessionId: row.session_id,
    name: row.name,
    ...(row.email === null ? {} : { email: row.email }),
    subject: row.subject,
    signedInBy: row.signed_in_by,
    ...(row.link_made_by === null ? {} : { linkMadeBy: row.link_made_by }),
    // It is possible that the person no longer has a role, because the roles file may have changed since the row was selected.
    role: roleIn(assignments, workspace) ?? "viewer",
    allWorkspaces: isInstallationAdmin(assignments),
    groups: row.groups.slice(0, GROUPS_SHOWN),
    sessions: row.sessions,
    lastSeenAt: row.last_seen_at,
  };
}

export function toSessionOut(
  row: PersonSessionRow,
  {
    scope: { workspace },
    deps,
    beyond,
    callerId,
  }: {
    scope: PeopleScope;
    deps: RolesDeps & Pick<Deps, "sessionIdleMs">;
    /** Ids of the sessions that the caller is not allowed to end. */
    beyond: ReadonlySet<string>;
    /** Id of the caller's session; `undefined` for a root key. */
    callerId: string | undefined;
  },
): SessionOut {
  return {
    sessionId: row.id,
    isCaller: row.id === callerId,
    elsewhere: beyond.has(row.id),
    ...(row.remote_ip === null ? {} : { address: row.remote_ip }),
    ...(row.user_agent === null ? {} : { userAgent: row.user_agent }),
    ...(row.link_made_by === null ? {} : { linkMadeBy: row.link_made_by }),
    role: roleIn(assignmentsOf(row, deps), workspace) ?? "viewer",
    createdAt: row.created_at,
    lastSeenAt: row.last_seen_at,
    expires: Math.min(row.expires_at, row.last_seen_at + deps.sessionIdleMs),
  };
}

export const sessionNotFound = (sessionId: string): PublicError =>
  new PublicError("session_not_found", `There is no open session ${sessionId} in the workspace.`);

export const linkNotFound = (linkId: string): PublicError =>
  new PublicError("sign_in_link_not_found", `There is no open sign-in link ${linkId} in the workspace.`);
