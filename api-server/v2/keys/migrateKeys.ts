import * as z from "zod";
import { checkRefill } from "../../../core/credits/credits.ts";
import { lastOfEachHash, storedHash } from "../../../core/keys/migration.ts";
import { findApi } from "../../db/apis.ts";
import { findMigration } from "../../db/migrations-of-keys.ts";
import { inTransaction } from "../../db/transaction.ts";
import { importKeys } from "../../domain/keys/import-keys.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { checkMeta } from "../../domain/refusals/check-meta.ts";
import { apiNotFound, invalidField, migrationNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Credits, Expires, KeyId, Meta, RatelimitsIn, RoleName, Slug } from "../schemas.ts";

/**
 * Maximum total number of permissions, roles and limits of all keys in a request. It is limited because each of them is a row that must be
 * projected.
 */
const PARTS_MAX = 100_000;

/**
 * Maximum number of keys in a request. Four concurrent requests of this size take half of a replica's memory, and each takes a few seconds.
 */
const IMPORTED_KEYS_MAX = 10_000;

const Hash = z
  .string()
  .min(3)
  .max(255)
  .describe(
    "For the algorithm `sha256`, the hash of the complete key in base64; for `prefixed`, the hash of its last part in hexadecimal.",
  )
  .meta({ examples: ["uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek="] });

/** Schema of a key in the request. The command line also uses it, to validate files. */
export const ImportedKey = z.strictObject({
  hash: Hash,
  name: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("Display name of the key.")
    .meta({ examples: ["Billing"] }),
  externalId: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("The owner's external id in your system; case-sensitive.")
    .meta({ examples: ["user_123"] }),
  meta: Meta.optional(),
  roles: z.array(RoleName).max(100).optional().describe("Names of roles; missing roles are created."),
  permissions: z.array(Slug).max(1000).optional().describe("Slugs of permissions; missing permissions are created."),
  expires: Expires.optional(),
  credits: Credits.optional().describe("Credits of the key. Default: unlimited."),
  ratelimits: RatelimitsIn.optional().describe("If several entries have the same name, the last one applies."),
  enabled: z
    .boolean()
    .default(true)
    .describe("Whether the key is enabled. Verifying a disabled key returns the code DISABLED."),
});

const Body = z.strictObject({
  migrationId: z
    .string()
    .min(3)
    .max(255)
    .describe("Id of the migration, which defines the hash algorithm.")
    .meta({ examples: ["mig_6fGh8Jk3LmN9pQrS"] }),
  apiId: z
    .string()
    .min(3)
    .max(255)
    .describe("Id of the API.")
    .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] }),
  keys: z
    .array(ImportedKey)
    .min(1)
    .max(IMPORTED_KEYS_MAX)
    .describe(
      "Keys to import, at most 10,000; about 1,000 per call is efficient. The last of several entries with one hash applies.",
    ),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  migrated: z
    .array(
      z.strictObject({
        hash: z
          .string()
          .describe("Hash of the key, as in the request.")
          .meta({ examples: ["LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="] }),
        keyId: KeyId,
      }),
    )
    .describe("Keys that were created."),
  failed: z
    .array(z.string())
    .describe("Hashes of keys that already exist. These keys were not changed.")
    .meta({ examples: [[]] }),
});
type Data = z.input<typeof Data>;

const required = { createKey: onApi("create_key") };

export const migrateKeys = defineProcedure({
  path: "keys.migrateKeys",
  effect: "change",
  summary: "Import keys that were issued elsewhere",
  description:
    "Stores hashes of keys, so that their holders can continue to use them. Keys of a `sha256` migration can be verified immediately. The first verification of a key of a `prefixed` migration requires the `migrationId` in `keys.verifyKey`; later ones do not. The call can be repeated safely: hashes that already exist are listed under `failed`.",
  permissions: required,
  errors: ["api_not_found", "migration_not_found"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const { apiId, migrationId } = body;
  call.require(required.createKey, apiId);
  const api = await findApi(deps.db, { workspaceId, apiId });
  if (api === undefined) throw apiNotFound(apiId);
  const migration = await findMigration(deps.db, { workspaceId, migrationId });
  if (migration === undefined) throw migrationNotFound(migrationId);
  checkKeys(body.keys);
  const entries = lastOfEachHash(migration.algorithm, body.keys);
  const keyIds = await inTransaction(deps, (tx) => importKeys(tx, call, { api, migration, entries }));
  const migrated: Data["migrated"] = [];
  const failed: string[] = [];
  for (const { hash } of entries.values()) {
    const keyId = keyIds.get(storedHash(migration.algorithm, hash));
    if (keyId === undefined) failed.push(hash);
    else migrated.push({ hash, keyId });
  }
  return { migrated, failed };
}

/**
 * Throws PublicError 400 for the first key with contradictory fields, or if the keys have too many permissions, roles and limits in total.
 */
function checkKeys(keys: Body["keys"]): void {
  let parts = 0;
  for (const [index, { credits, meta, permissions = [], roles = [], ratelimits = [] }] of keys.entries()) {
    const fault = credits && checkRefill(credits);
    if (fault !== undefined) throw invalidField(`body.keys[${index}].credits.refill`, fault);
    checkMeta(meta, `body.keys[${index}].meta`);
    parts += permissions.length + roles.length + ratelimits.length;
  }
  if (parts <= PARTS_MAX) return;
  throw invalidField(
    "body.keys",
    `expected at most ${PARTS_MAX} permissions, roles and rate limits in total, got ${parts}; send fewer keys at a time`,
  );
}
