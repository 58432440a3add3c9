import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { makeId } from "../../../core/ids.ts";
import { auditEvent } from "../../domain/managed/changes.ts";
import { createOnce } from "../../domain/managed/create-once.ts";
import { creatingManager } from "../../domain/managed/rules.ts";
import { MANAGED } from "../../domain/managed/things.ts";
import { onRbac } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import { insertPermission } from "../../store/permissions.ts";
import { inTransaction } from "../../store/transaction.ts";
import { Slug } from "../schemas.ts";
import { Description, PermissionName, toStoredDescription } from "./schemas.ts";

const Body = z.strictObject({
  name: PermissionName,
  slug: Slug,
  description: Description.optional(),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  permissionId: z
    .string()
    .describe("Id of the permission.")
    .meta({ examples: ["perm_4jKm6Np8Qr1St3Uv"] }),
});
type Data = z.input<typeof Data>;

const needed = { createPermission: onRbac("create_permission") };

export const createPermission = defineProcedure({
  path: "permissions.createPermission",
  effect: "change",
  summary: "Create a permission",
  description: "The slug is the name that queries ask for; it is unique in the workspace, case-insensitive.",
  permissions: needed,
  errors: ["permission_already_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<Data> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const { name, slug } = body;
  call.require(needed.createPermission);
  const manager = creatingManager(call);
  return inTransaction(deps, async (tx) => {
    const id = makeId("permission", deps.randomBytes(16));
    const description = toStoredDescription(body.description);
    const creation = await createOnce(tx, call, "permission", () =>
      insertPermission(tx, { workspaceId, id, name, slug, description, manager, createdAt: deps.nowMs() }),
    );
    if (creation.outcome === "own") return { permissionId: creation.id };
    if (creation.outcome === "taken") {
      throw new PublicError("permission_already_exists", `There is a permission with the slug ${slug} already.`);
    }
    await insertAudit(tx, call, [auditEvent(MANAGED.permission, { id, slug }, "Created")]);
    return { permissionId: id };
  });
}
