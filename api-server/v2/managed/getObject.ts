import * as z from "zod";
import { findLastManager } from "../../db/orphaned-objects.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import {
  CLAIM_REQUIRED,
  CLAIMED_ERRORS,
  findManagedObject,
  KEY_REQUIRED,
  ManagedKind,
  managedNotFound,
  TO_LEARN_OF,
} from "./managed-kinds.ts";

const Body = z.strictObject({
  kind: ManagedKind.describe("The kind of the object.").meta({ examples: ["role"] }),
  id: z
    .string()
    .min(1)
    .max(255)
    .describe("Its id; names are not accepted.")
    .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] }),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  kind: ManagedKind.describe("As in the request.").meta({ examples: ["role"] }),
  id: z
    .string()
    .describe("Its id.")
    .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] }),
  manager: z
    .string()
    .optional()
    .describe("`<cluster>/<kind>/<namespace>/<name>` of the manifest that it comes from; omitted: unmanaged.")
    .meta({ examples: ["main/Role/shop/editor"] }),
  lastManager: z
    .string()
    .optional()
    .describe("Of an unmanaged object: the manager that left it in the store.")
    .meta({ examples: ["main/ApiKeyPolicy/shop/orders"] }),
  async: z.boolean().optional().describe("Of an override: whether it is counted in each process."),
});
type Data = z.input<typeof Data>;

const required = { ...CLAIM_REQUIRED, ...KEY_REQUIRED };

export const getObject = defineProcedure({
  path: "managed.getObject",
  effect: "read",
  summary: "Say who manages an object",
  description: "A managed object comes from a manifest and is changed there. This says from which manifest.",
  permissions: required,
  errors: [...CLAIMED_ERRORS, "key_not_found"],
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
