import * as z from "zod";
import { administratorOf } from "../../domain/administration/administrator.ts";
import { isAdminOfAll } from "../../domain/administration/people.ts";
import { revokeSignInLink } from "../../domain/administration/sign-in-links.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Empty } from "../schemas.ts";
import { LinkId, linkNotFound } from "./people-schemas.ts";

const Body = z.strictObject({ linkId: LinkId });
type Body = z.output<typeof Body>;

const required = { deleteSession: onWorkspace("delete_session") };

export const deleteSignInLink = defineProcedure({
  path: "admin.deleteSignInLink",
  effect: "change",
  summary: "Revoke a sign-in link",
  description:
    "Revokes a link that is unused and has not expired. People who are admin of all workspaces can also revoke links to all workspaces.",
  permissions: required,
  errors: ["sign_in_link_not_found"],
  addition: true,
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Record<string, never>> {
  const { body, caller } = call;
  call.require(required.deleteSession);
  const scope = { workspaceId: caller.workspaceId, includesAll: isAdminOfAll(caller) };
  if (!(await revokeSignInLink(administratorOf(call), { ...scope, ...body }))) throw linkNotFound(body.linkId);
  return {};
}
