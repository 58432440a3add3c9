import * as z from "zod";
import { findApi } from "../../db/apis.ts";
import { administratorOf } from "../../domain/administration/administrator.ts";
import { createMigration } from "../../domain/administration/migrations.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { apiNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { ShortApiId } from "../schemas.ts";

const Body = z.strictObject({
  apiId: ShortApiId.describe("API of the imported keys."),
  name: z
    .string()
    .min(1)
    .max(255)
    .describe("Name of the import in the audit log.")
    .meta({ examples: ["keys of billing, November"] }),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  migrationId: z
    .string()
    .describe("Id of the migration, for `keys.migrateKeys`.")
    .meta({ examples: ["mig_6fGh8Jk3LmN9pQrS"] }),
});

const required = { createKey: onApi("create_key") };

export const startImport = defineProcedure({
  path: "admin.startImport",
  effect: "change",
  summary: "Start an import of keys",
  description:
    "Creates a migration with the algorithm `sha256`, for which `keys.migrateKeys` accepts hashes of complete keys, in base64.",
  permissions: required,
  errors: ["api_not_found"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Data>> {
  const { apiId, name } = call.body;
  const { workspaceId } = call.caller;
  if ((await findApi(call.deps.db, { workspaceId, apiId })) === undefined) throw apiNotFound(apiId);
  call.require(required.createKey, apiId);
  const migration = await createMigration(administratorOf(call), { workspaceId, name, algorithm: "sha256" });
  return { migrationId: migration.id };
}
