import * as z from "zod";
import { listSessionsOfPerson } from "../../db/people.ts";
import { findPersonBySession, findSessionsBeyond, peopleScopeOf } from "../../domain/administration/people.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { PersonOut, SessionId, SessionOut, sessionNotFound, toPersonOut, toSessionOut } from "./people-schemas.ts";

const SESSIONS_SHOWN = 100;

const Body = z.strictObject({ sessionId: SessionId.describe("Id of any session of the person.") });
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  ...PersonOut.shape,
  openSessions: z.array(SessionOut).describe(`Open sessions, newest first, up to ${SESSIONS_SHOWN}.`),
  hasMore: z.boolean().describe(`Whether the person has more than ${SESSIONS_SHOWN} open sessions.`),
});
type Data = z.input<typeof Data>;

const required = { readPerson: onWorkspace("read_person") };

export const getPerson = defineProcedure({
  path: "admin.getPerson",
  effect: "read",
  summary: "Get a person with their open sessions",
  description: "Returns only sessions that give a role in the workspace.",
  permissions: required,
  errors: ["session_not_found"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller, deps } = call;
  const { sessionId } = body;
  call.require(required.readPerson);
  const scope = await peopleScopeOf(call);
  const person = await findPersonBySession(deps.db, { ...scope, deps, sessionId });
  if (person === undefined) throw sessionNotFound(sessionId);
  const { issuer, subject } = person;
  const rows = await listSessionsOfPerson(deps.db, { ...scope.open, issuer, subject, rowsMax: SESSIONS_SHOWN + 1 });
  const shown = rows.slice(0, SESSIONS_SHOWN);
  const [newest] = shown;
  if (newest === undefined) throw sessionNotFound(sessionId);
  const granting = new Set(scope.open.groups);
  const row = {
    ...newest,
    session_id: newest.id,
    groups: [...new Set(shown.flatMap(({ groups }) => groups))].filter((group) => granting.has(group)).sort(),
    roles: shown.flatMap(({ roles }) => roles),
    sessions: shown.length,
    last_seen_at: Math.max(...shown.map((one) => one.last_seen_at)),
  };
  const beyond = await findSessionsBeyond(deps.db, call, shown);
  const callerId = caller.session?.row.id;
  return {
    ...toPersonOut(row, scope, deps),
    openSessions: shown.map((one) => toSessionOut(one, { scope, deps, beyond, callerId })),
    hasMore: rows.length > SESSIONS_SHOWN,
  };
}
