import * as z from "zod";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { activeSettings, Settings } from "./settings-schemas.ts";

const Body = z.strictObject({});
type Body = z.output<typeof Body>;

const required = { readWorkspace: onWorkspace("read_workspace") };

export const getSettings = defineProcedure({
  path: "admin.getSettings",
  effect: "read",
  summary: "Read the settings of the workspace",
  description: "Returns the quota, whether usage can be queried, and the limits of usage queries with their defaults.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  data: Settings,
  handle,
});

async function handle({ caller, deps, require }: Call<Body, typeof required>): Promise<Settings> {
  require(required.readWorkspace);
  return activeSettings(deps.db, caller.workspaceId);
}
