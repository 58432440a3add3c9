import * as z from "zod";
import { findWorkspace } from "../../db/workspaces.ts";
import { type Call, defineProcedure } from "../../procedure.ts";

const Body = z.strictObject({});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  id: z
    .string()
    .describe("Id of the workspace.")
    .meta({ examples: ["ws_4mNp6Qr8St1Uv3Wx"] }),
  name: z
    .string()
    .describe("Name of the workspace.")
    .meta({ examples: ["team-shop"] }),
});
type Data = z.input<typeof Data>;

export const getWorkspace = defineProcedure({
  path: "workspaces.getWorkspace",
  effect: "read",
  summary: "Read the workspace of the root key",
  description:
    "Returns the workspace in which every call with this root key acts. A client that holds root keys of several workspaces uses it to tell its sidecars to which workspace they belong.",
  permissions: {},
  errors: [],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle({ caller, deps }: Call<Body>): Promise<Data> {
  const workspace = await findWorkspace(deps.db, { workspace: caller.workspaceId });
  if (workspace === undefined) throw new Error(`the workspace ${caller.workspaceId} vanished during a call`);
  const { id, name } = workspace;
  return { id, name };
}
