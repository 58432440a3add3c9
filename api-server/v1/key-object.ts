import * as z from "zod";
import type { KeyRow } from "../db/keys.ts";
import type { Deps } from "../deps.ts";
import { type FullKey, readFullKeys } from "../domain/keys/full-keys.ts";
import type { KeyVault } from "../keys/key-vault.ts";
import { LegacyRefillOut, toLegacyRefill } from "./keys/legacy-credits.ts";
import { LegacyRatelimitOut, toLegacyRatelimit } from "./keys/legacy-limit.ts";
import { ApiId, KeyId, Meta, NameOut, unixMs, WorkspaceId } from "./schemas.ts";

/*
 * A key as `keys.getKey` and `apis.listKeys` return it (api-v1.md section 5).
 */

const text = (description: string, example: string) =>
  z
    .string()
    .describe(description)
    .meta({ examples: [example] });

export const KeyObject = z.object({
  id: KeyId,
  start: text("First characters of the secret, to identify the key.", "prod_3Ab9"),
  workspaceId: WorkspaceId,
  apiId: ApiId.optional(),
  name: NameOut.optional(),
  ownerId: text("`ownerId` that a v1 call set for the key.", "user_123").optional(),
  meta: Meta.optional(),
  createdAt: unixMs("When the key was created, Unix milliseconds."),
  updatedAt: unixMs("When the key was last updated, Unix milliseconds.").optional(),
  expires: unixMs("When the key expires, Unix milliseconds.").optional(),
  remaining: z
    .int()
    .optional()
    .describe("Remaining credits; omitted if they are unlimited.")
    .meta({ examples: [1000] }),
  refill: LegacyRefillOut.optional().describe("Refill of the credits."),
  ratelimit: LegacyRatelimitOut.optional().describe("The limit `default` of the key."),
  roles: z.array(text("Name of a role.", "editor")).optional().describe("Names of the key's roles."),
  permissions: z
    .array(text("Slug of a permission.", "documents.read"))
    .optional()
    .describe("Slugs of all permissions that the key holds, directly or through roles."),
  enabled: z.boolean().optional().describe("Whether the key is enabled."),
  plaintext: text("The secret of a recoverable key, if the request asks for it.", "prod_5Kd3NBUAdUnhyzen").optional(),
  identity: z
    .object({
      id: text("Id of the identity.", "id_7nPq0Rs3Tu6Vw9Xy"),
      externalId: text("External id of the identity in your system.", "user_123"),
      meta: Meta.optional(),
    })
    .optional()
    .describe("Identity that owns the key."),
  environment: text(
    "Environment that was given when the key was created. Only lists contain it.",
    "production",
  ).optional(),
});
export type KeyObject = z.input<typeof KeyObject>;

/** Returns keys in the given order. If a vault is given, includes the secrets of recoverable keys. Only lists contain `environment`. */
export async function describeKeys(
  deps: Deps,
  workspaceId: string,
  rows: readonly KeyRow[],
  { vault, inList = false }: { readonly vault?: KeyVault | undefined; readonly inList?: boolean } = {},
): Promise<KeyObject[]> {
  const keys = await readFullKeys(deps, workspaceId, rows, vault);
  return keys.map((key) => ({
    ...toKeyObject(key, workspaceId),
    ...(inList && key.row.environment !== null ? { environment: key.row.environment } : {}),
  }));
}

function toKeyObject({ row, parts, remaining, plaintext }: FullKey, workspaceId: string): KeyObject {
  const refill = remaining === undefined ? undefined : toLegacyRefill(row);
  const ratelimit = toLegacyRatelimit(parts.ratelimits);
  return {
    id: row.id,
    start: row.start,
    workspaceId,
    apiId: row.api_id,
    ...(row.name === null ? {} : { name: row.name }),
    ...(row.owner_id === null ? {} : { ownerId: row.owner_id }),
    ...(row.meta === null ? {} : { meta: { ...row.meta } }),
    createdAt: row.created_at,
    ...(row.updated_at === null ? {} : { updatedAt: row.updated_at }),
    ...(row.expires_at === null ? {} : { expires: row.expires_at }),
    ...(remaining === undefined ? {} : { remaining }),
    ...(refill === undefined ? {} : { refill }),
    ...(ratelimit === undefined ? {} : { ratelimit }),
    roles: parts.roles,
    permissions: parts.permissions,
    enabled: row.enabled,
    ...(plaintext === undefined ? {} : { plaintext }),
    ...identityOf(row),
  };
}

function identityOf({
  identity_id: id,
  external_id: externalId,
  identity_meta: meta,
}: KeyRow): Pick<KeyObject, "identity"> {
  if (id === null || externalId === null) return {};
  return { identity: { id, externalId, meta: { ...meta } } };
}
