import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { grantsOfPerson } from "../../../core/permissions/person-roles.ts";
import { administratorOf } from "../../domain/administration/administrator.ts";
import { isAdminOfAll } from "../../domain/administration/people.ts";
import { makeSignInLink } from "../../domain/administration/sign-in-links.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { unixMs } from "../schemas.ts";
import { AllWorkspaces, LinkId, PersonName, Role } from "./people-schemas.ts";
import { requireToGrant } from "./root-key-schemas.ts";

const Body = z.strictObject({
  name: PersonName,
  role: Role.describe("Role of the person. The caller must hold all permissions of the role."),
  allWorkspaces: AllWorkspaces.default(false).describe(
    "Whether the role applies to all workspaces. Only people who are admin of all workspaces can set this. Default: the role applies only to this workspace.",
  ),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  linkId: LinkId,
  token: z
    .string()
    .describe("Secret of the link: `/dashboard/sign-in#token=TOKEN`. Only this response contains it.")
    .meta({ examples: ["Zm9yIHRoZSBleGFtcGxlIG9ubHksIDMyIGJ5dGVzLi4"] }),
  expires: unixMs("When the link expires, Unix milliseconds."),
});
type Data = z.input<typeof Data>;

const required = { createSignInLink: onWorkspace("create_sign_in_link") };

export const createSignInLink = defineProcedure({
  path: "admin.createSignInLink",
  effect: "change",
  summary: "Create a sign-in link",
  description:
    "The link signs one person in to the dashboard. It can be used once and expires after five minutes. The caller vouches for the person. If the caller signed in with a link, the new session ends no later than the caller's.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller } = call;
  const { name, role, allWorkspaces } = body;
  const { workspaceId, session } = caller;
  call.require(required.createSignInLink);
  requireToGrant(call, grantsOfPerson(role));
  if (allWorkspaces && !isAdminOfAll(caller)) {
    throw new PublicError(
      "forbidden",
      "Only people who are admin of all workspaces can create a sign-in link to all workspaces.",
    );
  }
  const { linkId, token, expiresAt } = await makeSignInLink(administratorOf(call), {
    name,
    role,
    workspaceId: allWorkspaces ? undefined : workspaceId,
    logWorkspaceId: workspaceId,
    madeIn: session?.row,
  });
  return { linkId, token, expires: expiresAt };
}
