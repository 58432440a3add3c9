import * as z from "zod";
import { listApiNames, listKeyNames, listNamespaceNames } from "../../db/object-names.ts";
import { onApi, onNamespace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";

const NAMED_IDS_MAX = 200;

const Body = z.strictObject({
  kind: z.enum(["key", "api", "namespace"]).describe("Kind of the objects."),
  ids: z
    .array(z.string().min(1).max(255))
    .min(1)
    .max(NAMED_IDS_MAX)
    .describe("Ids of objects. For an API, the id of its key space is also accepted.")
    .meta({ examples: [["key_4fGh7Jk2LmN8pQrS"]] }),
});
type Body = z.output<typeof Body>;

const ObjectName = z.strictObject({
  id: z
    .string()
    .describe("Id of the object.")
    .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] }),
  name: z
    .string()
    .optional()
    .describe("Name of the object; omitted for a key without a name.")
    .meta({ examples: ["billing"] }),
  start: z
    .string()
    .optional()
    .describe("First characters of the secret; only for keys.")
    .meta({ examples: ["prod_4fG"] }),
  apiId: z
    .string()
    .optional()
    .describe("Id of the key's API; only for keys.")
    .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] }),
  keySpaceId: z
    .string()
    .optional()
    .describe("Id of the API's key space, by which usage is counted; only for APIs.")
    .meta({ examples: ["ks_2bCd4Ef6Gh8Jk1Mn"] }),
  deleted: z.boolean().describe("Whether the object was deleted. Names of deleted objects are kept for 30 days."),
});
type ObjectName = z.input<typeof ObjectName>;

const Data = z
  .array(ObjectName)
  .describe("Objects, sorted by id. Omits those that do not exist or that the caller is not allowed to read.");
type Data = z.input<typeof Data>;

const required = {
  key: onApi("read_key", "for keys"),
  api: onApi("read_api", "for APIs"),
  namespace: onNamespace("read_namespace", "for namespaces"),
};

export const resolveNames = defineProcedure({
  path: "admin.resolveNames",
  effect: "read",
  summary: "Read the names of objects",
  description:
    "Returns the names of many objects in one call, for lists and charts that have only ids. Requires the permission to read objects of the kind, and returns only the objects for which the caller holds it.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller, deps } = call;
  const { kind, ids } = body;
  const held = call.idsHeld(required[kind]);
  if (held.length === 0) call.require(required[kind]);
  const { workspaceId } = caller;
  const asked = { workspaceId, ids, within: held === "all" ? null : held };
  if (kind === "key") {
    const rows = await listKeyNames(deps.db, asked);
    return rows.map(({ id, name, start, api_id, is_deleted }) => ({
      id,
      ...(name === null ? {} : { name }),
      start,
      apiId: api_id,
      deleted: is_deleted,
    }));
  }
  if (kind === "api") {
    const rows = await listApiNames(deps.db, asked);
    return rows.map(({ id, name, key_space_id, is_deleted }): ObjectName => {
      return { id, name, keySpaceId: key_space_id, deleted: is_deleted };
    });
  }
  const rows = await listNamespaceNames(deps.db, asked);
  return rows.map(({ id, name, is_deleted }) => ({ id, name, deleted: is_deleted }));
}
