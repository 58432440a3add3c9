import * as z from "zod";
import type { Queryable } from "../../../postgres/queryable.ts";
import { findManager, type ManagerRows, type ObjectRef } from "../../db/managed-objects.ts";
import { findLastManager } from "../../db/orphaned-objects.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { ManagedKind, managedNotFound, TO_LEARN_OF, TO_READ } from "./managed-kinds.ts";

const Body = z.strictObject({
  kind: ManagedKind.describe("Kind of the object.").meta({ examples: ["role"] }),
  id: z
    .string()
    .min(1)
    .max(255)
    .describe("Id of the object; names are not accepted.")
    .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] }),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  kind: ManagedKind.describe("Kind of the object, as in the request.").meta({ examples: ["role"] }),
  id: z
    .string()
    .describe("Id of the object.")
    .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] }),
  manager: z
    .string()
    .optional()
    .describe("Manager: `<cluster>/<kind>/<namespace>/<name>` of the manifest. Omitted for an unmanaged object.")
    .meta({ examples: ["main/Role/shop/editor"] }),
  lastManager: z
    .string()
    .optional()
    .describe("Last manager of an unmanaged object.")
    .meta({ examples: ["main/ApiKeyPolicy/shop/orders"] }),
  async: z.boolean().optional().describe("Whether each process counts by itself; only for overrides."),
});
type Data = z.input<typeof Data>;

const required = TO_READ;

export const getObject = defineProcedure({
  path: "managed.getObject",
  effect: "read",
  summary: "Read the manager of an object",
  description: "Returns the manifest that manages an object. A managed object must be changed in its manifest.",
  permissions: required,
  errors: [
    "api_not_found",
    "role_not_found",
    "permission_not_found",
    "ratelimit_namespace_not_found",
    "ratelimit_override_not_found",
    "policy_not_found",
    "key_not_found",
  ],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller, deps } = call;
  const { kind, id } = body;
  const { workspaceId } = caller;
  const found = await findManagedObject(deps.db, kind, { workspaceId, id });
  if (found === undefined) throw managedNotFound(kind, id);
  call.require(TO_LEARN_OF[kind], found.permissionId);
  const lastManager = found.manager === null ? await findLastManager(deps.db, { workspaceId, kind, id }) : undefined;
  return {
    kind,
    id,
    ...(found.manager === null ? {} : { manager: found.manager }),
    ...(lastManager === undefined ? {} : { lastManager }),
    ...(found.async === undefined ? {} : { async: found.async }),
  };
}

interface ManagedObject {
  readonly manager: string | null;
  /** Id that the permission to read the object can contain; `undefined` if that permission has no form with an id. */
  readonly permissionId: string | undefined;
  /** Whether the limit is asynchronous; only for an override. */
  readonly async?: boolean;
}

/** Finds an object by its id; `undefined` if there is no such live object. */
async function findManagedObject<Kind extends ManagedKind>(
  db: Queryable,
  kind: Kind,
  ref: ObjectRef,
): Promise<ManagedObject | undefined> {
  const row = await findManager(db, kind, ref);
  if (row === undefined) return undefined;
  const { manager } = row;
  const permissionId = PERMISSION_ID[kind](row, ref.id);
  return { manager, permissionId, ...("async" in row ? { async: row.async } : {}) };
}

const PERMISSION_ID: { readonly [Kind in ManagedKind]: (row: ManagerRows[Kind], id: string) => string | undefined } = {
  api: (_, id) => id,
  role: () => undefined,
  permission: () => undefined,
  namespace: (_, id) => id,
  override: ({ namespace_id }) => namespace_id,
  key: ({ api_id }) => api_id,
  policy: ({ api_id }) => api_id,
};
