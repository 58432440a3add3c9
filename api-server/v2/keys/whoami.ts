import * as z from "zod";
import { KEY_LENGTH_MAX } from "../../../core/keys/key-hash.ts";
import { hashKey } from "../../../core/keys/key-string.ts";
import { findKeyByHash } from "../../db/keys.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { keyOfSecretNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { describeKeys } from "../key-reply.ts";
import { KeyOut } from "../schemas.ts";

const Body = z.strictObject({
  key: z
    .string()
    .min(1)
    .max(KEY_LENGTH_MAX)
    .describe("The secret of a key.")
    .meta({ examples: ["prod_5Kd3NBUAdUnhyzen"] }),
});
type Body = z.output<typeof Body>;

const required = { readKey: onApi("read_key") };

export const whoami = defineProcedure({
  path: "keys.whoami",
  effect: "read",
  summary: "Read a key by its secret",
  description:
    "Returns everything about the key except its secret, even if it is disabled or expired. This is not a verification: it charges no limit, spends no credits and records no use.",
  permissions: required,
  errors: ["key_not_found"],
  body: Body,
  data: KeyOut,
  handle,
});

async function handle({ body, caller, deps, require }: Call<Body, typeof required>): Promise<KeyOut> {
  const { workspaceId } = caller;
  const row = await findKeyByHash(deps.db, { workspaceId, hash: hashKey(body.key) });
  if (row === undefined) throw keyOfSecretNotFound();
  require(required.readKey, row.api_id);
  const [key] = await describeKeys(deps, workspaceId, [row]);
  if (key === undefined) throw keyOfSecretNotFound();
  return key;
}
