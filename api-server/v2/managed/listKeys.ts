import * as z from "zod";
import { listDirectPermissions } from "../../db/key-permissions.ts";
import { listKeysOfManager } from "../../db/keys.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { describeKeys } from "../key-reply.ts";
import { KeyOut, unixMs } from "../schemas.ts";
import { Manager } from "./managed-kinds.ts";

const Body = z.strictObject({ manager: Manager });
type Body = z.output<typeof Body>;

const ManagedKey = KeyOut.omit({ plaintext: true }).extend({
  apiId: z
    .string()
    .describe("Id of the key's API.")
    .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] }),
  directPermissions: z
    .array(z.string().meta({ examples: ["documents.read"] }))
    .optional()
    .describe("Slugs of the permissions that the key holds directly."),
});

const Data = z.strictObject({
  now: unixMs("The server's time, Unix milliseconds: ages of keys do not depend on the client's clock."),
  keys: z.array(ManagedKey).describe("Keys of the manifest, newest first."),
});
type Data = z.input<typeof Data>;

const required = { readKey: onApi("read_key", "for every key that is listed") };

/** Maximum number of keys in the response. A manager needs few: the active key, and those that expire after their replacement. */
const KEYS_MAX = 100;

export const listKeys = defineProcedure({
  path: "managed.listKeys",
  effect: "read",
  summary: "List the keys of a manifest",
  description:
    "A manager may have several keys with different names. The newest 100 are listed, the newest first; never their secrets.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const rows = await listKeysOfManager(deps.db, { workspaceId, manager: body.manager, rowsMax: KEYS_MAX });
  for (const { api_id } of rows) call.require(required.readKey, api_id);
  const keys = await describeKeys(deps, workspaceId, rows);
  const direct = await listDirectPermissions(deps.db, { workspaceId, keyIds: rows.map(({ id }) => id) });
  return {
    now: deps.nowMs(),
    keys: keys.map((key, i) => {
      const directPermissions = direct.get(key.keyId) ?? [];
      return { ...key, apiId: rows[i]?.api_id ?? "", ...(directPermissions.length === 0 ? {} : { directPermissions }) };
    }),
  };
}
