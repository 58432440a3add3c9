import type { PoolClient } from "pg";
import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { makeId } from "../../../core/ids.ts";
import { insertAudit } from "../../db/audit.ts";
import { insertNamespace, lockNamespaceByName } from "../../db/namespaces.ts";
import { inTransaction } from "../../db/transaction.ts";
import { auditEvent, handOver } from "../../domain/managed/changes.ts";
import { createOnce } from "../../domain/managed/create-once.ts";
import { MANAGED } from "../../domain/managed/resources.ts";
import { adoptingManager, creatingManager } from "../../domain/managed/rules.ts";
import { onNamespaces } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";

const Body = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(512)
    .describe("Name of the namespace; case-sensitive, unique among the live namespaces of the workspace.")
    .meta({ examples: ["email.outbound"] }),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  namespaceId: z
    .string()
    .describe("Id of the namespace.")
    .meta({ examples: ["rlns_6yZa8Bc1De3Fg5Hj"] }),
});
type Data = z.input<typeof Data>;

const required = { createNamespace: onNamespaces("create_namespace") };

export const createNamespace = defineProcedure({
  path: "ratelimit.createNamespace",
  effect: "change",
  summary: "Create a rate-limit namespace",
  description:
    "A deleted namespace may have had the same name: the new one has its own id, counters and overrides. With `Postern-Adopt: true` an unmanaged namespace of the name is taken over instead.",
  permissions: required,
  errors: ["ratelimit_namespace_already_exists", "managed_exists"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const { name } = body;
  call.require(required.createNamespace);
  const manager = creatingManager(call);
  return inTransaction(deps, async (tx) => {
    const id = makeId("namespace", deps.randomBytes(16));
    const creation = await createOnce(tx, call, "namespace", () =>
      insertNamespace(tx, { workspaceId, id, name, manager, createdAt: deps.nowMs() }),
    );
    if (creation.outcome === "own") return { namespaceId: creation.id };
    if (creation.outcome === "taken") return { namespaceId: await adopt(tx, call) };
    await insertAudit(tx, call, [auditEvent(MANAGED.namespace, { id, name }, "Created")]);
    return { namespaceId: id };
  });
}

/**
 * Adopts the live namespace with this name. Throws PublicError 409 if the call does not request adoption, or if the namespace has a
 * manager.
 */
async function adopt(tx: PoolClient, call: Call<Body>): Promise<string> {
  const { name } = call.body;
  const { workspaceId } = call.caller;
  const manager = adoptingManager(call);
  const existing = await lockNamespaceByName(tx, { workspaceId, name });
  if (existing === undefined || existing.manager !== null || manager === null) {
    const by = existing?.manager == null ? "" : `, managed by ${existing.manager}`;
    throw new PublicError(
      "ratelimit_namespace_already_exists",
      `A rate-limit namespace named ${name} already exists${by}.`,
    );
  }
  await insertAudit(tx, call, await handOver(tx, call, MANAGED.namespace, existing, manager));
  return existing.id;
}
