import * as z from "zod";
import type { PublicError } from "../../../core/errors.ts";
import {
  apiPermission,
  type Requirement,
  ratelimitPermission,
  rbacPermission,
} from "../../../core/permissions/root-key.ts";
import {
  apiNotFound,
  keyNotFound,
  namespaceNotFound,
  overrideNotFound,
  permissionNotFound,
  policyNotFound,
  roleNotFound,
} from "../../domain/not-found.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import {
  findManagedApi,
  findManagedKey,
  findManagedNamespace,
  findManagedOverride,
  findManagedPermission,
  findManagedPolicy,
  findManagedRole,
  type ManagedRow,
  type ObjectRef,
} from "../../store/managed-objects.ts";
import type { Queryable } from "../../store/queryable.ts";
import { onApi, onNamespace, onRbac } from "../needed-permissions.ts";

const Kind = z.enum(["api", "role", "permission", "namespace", "override", "key", "policy"]);
type Kind = z.output<typeof Kind>;

const Body = z.strictObject({
  kind: Kind.describe("What sort of object it is.").meta({ examples: ["role"] }),
  id: z
    .string()
    .min(1)
    .max(255)
    .describe("Its id; a name is not looked for.")
    .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] }),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  kind: Kind.describe("What was asked for.").meta({ examples: ["role"] }),
  id: z
    .string()
    .describe("Its id.")
    .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] }),
  manager: z
    .string()
    .optional()
    .describe("`<cluster>/<kind>/<namespace>/<name>` of the manifest that it comes from; omitted: unmanaged.")
    .meta({ examples: ["main/Role/shop/editor"] }),
  async: z.boolean().optional().describe("Of an override: whether it is counted in each process."),
});
type Data = z.input<typeof Data>;

export const getObject = defineProcedure({
  path: "managed.getObject",
  summary: "Tell who manages an object",
  description: "A managed object comes from a manifest and is changed there. This tells from which.",
  permissions: [
    onApi("read_api", "for kind `api` or `policy`"),
    onApi("read_key", "for kind `key`"),
    onRbac("read_role", "for kind `role`"),
    onRbac("read_permission", "for kind `permission`"),
    onNamespace("read_namespace", "for kind `namespace`"),
    onNamespace("read_override", "for kind `override`"),
  ],
  errors: [
    "api_not_found",
    "role_not_found",
    "permission_not_found",
    "ratelimit_namespace_not_found",
    "ratelimit_override_not_found",
    "key_not_found",
    "policy_not_found",
  ],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body>): Promise<Data> {
  const { body, caller, deps } = call;
  const { kind, id } = body;
  const found = await FIND[kind](deps.db, { workspaceId: caller.workspaceId, id });
  if (found === undefined) throw NOT_FOUND[kind](id);
  call.require(found.required);
  return {
    kind,
    id,
    ...(found.manager === null ? {} : { manager: found.manager }),
    ...(found.async === undefined ? {} : { async: found.async }),
  };
}

interface Found {
  readonly required: Requirement;
  readonly manager: string | null;
  readonly async?: boolean;
}

/** Adds to a row what may be read only by whoever may read the object itself. */
const allowing = <Row extends ManagedRow>(
  row: Row | undefined,
  required: (row: Row) => Requirement,
): Found | undefined => (row === undefined ? undefined : { manager: row.manager, required: required(row) });

const FIND: Readonly<Record<Kind, (db: Queryable, ref: ObjectRef) => Promise<Found | undefined>>> = {
  api: async (db, ref) => allowing(await findManagedApi(db, ref), () => apiPermission("read_api", ref.id)),
  role: async (db, ref) => allowing(await findManagedRole(db, ref), () => rbacPermission("read_role")),
  permission: async (db, ref) =>
    allowing(await findManagedPermission(db, ref), () => rbacPermission("read_permission")),
  namespace: async (db, ref) =>
    allowing(await findManagedNamespace(db, ref), () => ratelimitPermission("read_namespace", ref.id)),
  override: async (db, ref) => {
    const row = await findManagedOverride(db, ref);
    const found = allowing(row, ({ namespace_id }) => ratelimitPermission("read_override", namespace_id));
    return found === undefined || row === undefined ? undefined : { ...found, async: row.async };
  },
  key: async (db, ref) => allowing(await findManagedKey(db, ref), ({ api_id }) => apiPermission("read_key", api_id)),
  policy: async (db, ref) =>
    allowing(await findManagedPolicy(db, ref), ({ api_id }) => apiPermission("read_api", api_id)),
};

const NOT_FOUND: Readonly<Record<Kind, (id: string) => PublicError>> = {
  api: apiNotFound,
  role: roleNotFound,
  permission: permissionNotFound,
  namespace: namespaceNotFound,
  override: overrideNotFound,
  key: keyNotFound,
  policy: policyNotFound,
};
