import * as z from "zod";
import { pageOpenLinks } from "../../db/sign-in-links.ts";
import { isAdminOfAll } from "../../domain/administration/people.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { Cursor, PageLimit, unixMs } from "../schemas.ts";
import { AllWorkspaces, LinkId, PersonName, Role } from "./people-schemas.ts";

const Body = z.strictObject({ limit: PageLimit, cursor: Cursor.max(1024).optional() });
type Body = z.output<typeof Body>;

const LinkOut = z.strictObject({
  linkId: LinkId,
  name: PersonName,
  role: Role,
  allWorkspaces: AllWorkspaces,
  madeBy: z
    .string()
    .describe("Who made the link.")
    .meta({ examples: ["Grace Hopper"] }),
  createdAt: unixMs("When the link was created, Unix milliseconds."),
  expires: unixMs("When the link expires, Unix milliseconds."),
});
type LinkOut = z.input<typeof LinkOut>;

const required = { readPerson: onWorkspace("read_person") };

export const listSignInLinks = defineListProcedure({
  path: "admin.listSignInLinks",
  effect: "read",
  summary: "List the open sign-in links",
  description:
    "Lists unused, unexpired links of the workspace, without their tokens. People who are admin of all workspaces also see the links to all workspaces.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  item: LinkOut,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<LinkOut>> {
  const { body, caller, deps } = call;
  const { limit, cursor = "" } = body;
  call.require(required.readPerson);
  const scope = { workspaceId: caller.workspaceId, includesAll: isAdminOfAll(caller), nowMs: deps.nowMs() };
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const rows = await pageOpenLinks(deps.db, { ...scope, cursor, rowsMax: limit + 1 });
  const items = rows.slice(0, limit).map((row) => ({
    linkId: row.id,
    name: row.name,
    role: row.role,
    allWorkspaces: row.workspace_id === null,
    madeBy: row.created_by,
    createdAt: row.created_at,
    expires: row.expires_at,
  }));
  return { items, cursor: rows[limit]?.id };
}
