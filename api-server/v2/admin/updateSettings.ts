import * as z from "zod";
import { administratorOf } from "../../domain/administration/administrator.ts";
import { changeAnalytics } from "../../domain/administration/analytics.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { activeSettings, Settings } from "./settings-schemas.ts";

const Body = z.strictObject({
  analytics: z
    .boolean()
    .describe("Whether usage of the workspace can be queried. Usage is counted in either case.")
    .meta({ examples: [true] }),
});
type Body = z.output<typeof Body>;

const required = { updateWorkspace: onWorkspace("update_workspace") };

export const updateSettings = defineProcedure({
  path: "admin.updateSettings",
  effect: "change",
  summary: "Enable or disable a workspace's usage queries",
  description: "A change takes effect with the next query. `admin.updateQueryLimits` sets the limits of the queries.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  data: Settings,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Settings> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  call.require(required.updateWorkspace);
  await changeAnalytics(administratorOf(call), { workspaceId, change: { enabled: body.analytics } });
  return activeSettings(deps.db, workspaceId);
}
