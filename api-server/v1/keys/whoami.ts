import * as z from "zod";
import { hashKey } from "../../../core/keys/key-string.ts";
import { findKeyByHash } from "../../db/keys.ts";
import { readFullKeys } from "../../domain/keys/full-keys.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { keyOfSecretNotFound } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { KeyId, Meta, NameOut, unixMs } from "../schemas.ts";

const Body = z.object({
  key: z
    .string()
    .min(1)
    .describe("The secret of a key.")
    .meta({ examples: ["prod_5Kd3NBUAdUnhyzen"] }),
});
type Body = z.output<typeof Body>;

const text = (description: string, example: string) =>
  z
    .string()
    .describe(description)
    .meta({ examples: [example] });

const ResponseBody = z.object({
  id: KeyId,
  name: NameOut.optional(),
  remaining: z
    .int()
    .optional()
    .describe("Remaining credits; omitted if they are unlimited.")
    .meta({ examples: [1000] }),
  identity: z
    .object({
      id: text("Id of the identity.", "id_7nPq0Rs3Tu6Vw9Xy"),
      externalId: text("External id of the identity in your system.", "user_123"),
    })
    .optional()
    .describe("Identity that owns the key."),
  meta: Meta.optional(),
  createdAt: unixMs("When the key was created, Unix milliseconds."),
  enabled: z.boolean().describe("Whether the key is enabled."),
  environment: text("Environment that was given when the key was created.", "production").optional(),
});

const required = { readKey: onApi("read_key") };

export const whoami = defineV1Procedure({
  path: "keys.whoami",
  method: "POST",
  successor: "keys.whoami",
  effect: "read",
  summary: "Read a key by its secret",
  description:
    "Reads the key, even if it is disabled or expired. This is not a verification: it charges no limit, spends no credits and records no use.",
  permissions: required,
  errors: ["key_not_found"],
  input: Body,
  response: ResponseBody,
  handle,
});

async function handle({
  body,
  caller,
  deps,
  require,
}: Call<Body, typeof required>): Promise<z.input<typeof ResponseBody>> {
  const { workspaceId } = caller;
  const row = await findKeyByHash(deps.db, { workspaceId, hash: hashKey(body.key) });
  if (row === undefined) throw keyOfSecretNotFound();
  require(required.readKey, row.api_id);
  const [key] = await readFullKeys(deps, workspaceId, [row]);
  const { identity_id: id, external_id: externalId } = row;
  return {
    id: row.id,
    ...(row.name === null ? {} : { name: row.name }),
    ...(key?.remaining === undefined ? {} : { remaining: key.remaining }),
    ...(id === null || externalId === null ? {} : { identity: { id, externalId } }),
    ...(row.meta === null ? {} : { meta: { ...row.meta } }),
    createdAt: row.created_at,
    enabled: row.enabled,
    ...(row.environment === null ? {} : { environment: row.environment }),
  };
}
