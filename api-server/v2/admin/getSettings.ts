import * as z from "zod";
import { onWorkspace } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Settings, settingsInForce } from "./settings-schemas.ts";

const Body = z.strictObject({});
type Body = z.output<typeof Body>;

const needed = { readWorkspace: onWorkspace("read_workspace") };

export const getSettings = defineProcedure({
  path: "admin.getSettings",
  effect: "read",
  summary: "Say what is set for the workspace",
  description: "Its quota, whether its usage can be queried, and what bounds those queries, each with its default.",
  permissions: needed,
  errors: [],
  addition: true,
  body: Body,
  data: Settings,
  handle,
});

async function handle({ caller, deps, require }: Call<Body, typeof needed>): Promise<Settings> {
  require(needed.readWorkspace);
  return settingsInForce(deps.db, caller.workspaceId);
}
