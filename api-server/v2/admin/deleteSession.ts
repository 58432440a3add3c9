import * as z from "zod";
import { administratorOf } from "../../domain/administration/administrator.ts";
import { endSessionsOfPerson } from "../../domain/administration/people.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { SessionId, sessionNotFound } from "./people-schemas.ts";

const Body = z.strictObject({
  sessionId: SessionId,
  everywhere: z
    .boolean()
    .default(false)
    .describe("Whether to end all of the person's sessions that give a role in the workspace.")
    .meta({ examples: [true] }),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  sessions: z
    .int()
    .describe("Number of ended sessions.")
    .meta({ examples: [2] }),
  links: z
    .int()
    .describe("Number of unused sign-in links that were revoked as well.")
    .meta({ examples: [0] }),
});
type Data = z.input<typeof Data>;

const required = { deleteSession: onWorkspace("delete_session") };

export const deleteSession = defineProcedure({
  path: "admin.deleteSession",
  effect: "change",
  summary: "End a session or all sessions of a person",
  description:
    "Takes effect with the next request. Also revokes unused sign-in links that the sessions created and, with `everywhere`, those for the same name. A session that gives a role in other workspaces can be ended only by someone who is admin of each of them, or of all workspaces.",
  permissions: required,
  errors: ["session_not_found"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  call.require(required.deleteSession);
  const ended = await endSessionsOfPerson(administratorOf(call), call, call.body);
  if (ended === undefined) throw sessionNotFound(call.body.sessionId);
  return ended;
}
