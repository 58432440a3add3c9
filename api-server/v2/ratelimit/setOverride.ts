import type { PoolClient } from "pg";
import * as z from "zod";
import { makeId } from "../../../core/ids.ts";
import { auditEvent } from "../../domain/managed/changes.ts";
import { findCreated } from "../../domain/managed/create-once.ts";
import { adopting, creatingManager, guardManaged } from "../../domain/managed/rules.ts";
import { MANAGED } from "../../domain/managed/things.ts";
import { namespaceNotFound } from "../../domain/refusals/not-found.ts";
import { onNamespace } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import { holdNamespace, type NamespaceRow } from "../../store/namespaces.ts";
import { insertOverride, lockOverride, type OverrideRow, updateOverride } from "../../store/overrides.ts";
import { inTransaction } from "../../store/transaction.ts";
import { Namespace, OverrideIdentifier } from "./schemas.ts";

/** How often an override may be set and deleted by others while we read it before we give up. */
const ATTEMPTS_MAX = 5;

const Body = z.strictObject({
  namespace: Namespace,
  identifier: OverrideIdentifier,
  limit: z
    .int()
    .min(0)
    .describe("Units per window instead of those of the call; 0 always denies.")
    .meta({ examples: [1000] }),
  duration: z
    .int()
    .min(1000)
    .describe("Length of the window, ms.")
    .meta({ examples: [60_000] }),
  async: z
    .boolean()
    .default(false)
    .describe("Counted in each process and synced in the background: faster, and less exact.")
    .meta({ "x-postern-addition": true }),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  overrideId: z
    .string()
    .describe("Id of the override.")
    .meta({ examples: ["rlor_3mNp5Qr7St9Uv2Wx"] }),
});
type Data = z.input<typeof Data>;

const needed = { setOverride: onNamespace("set_override") };

export const setOverride = defineProcedure({
  path: "ratelimit.setOverride",
  effect: "change",
  summary: "Set an override",
  description:
    "Replaces limit and duration of calls for one identifier, or for all identifiers that match a pattern. An identifier of a namespace has at most one override: setting it again changes it and keeps its id.",
  permissions: needed,
  errors: ["ratelimit_namespace_not_found", "managed_elsewhere", "managed_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<Data> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  return inTransaction(deps, async (tx) => {
    const namespace = await holdNamespace(tx, { workspaceId, namespace: body.namespace });
    if (namespace === undefined) throw namespaceNotFound(body.namespace);
    call.require(needed.setOverride, namespace.id);
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const { identifier } = body;
      const existing = await lockOverride(tx, { workspaceId, namespaceId: namespace.id, identifier });
      const overrideId =
        existing === undefined ? await create(tx, call, namespace) : await change(tx, call, namespace, existing);
      if (overrideId !== undefined) return { overrideId };
    }
    throw new Error(`an override could not be set in ${ATTEMPTS_MAX} attempts`);
  });
}

/** Returns undefined when another transaction has just created one for the identifier. */
async function create(tx: PoolClient, call: Call<Body>, namespace: NamespaceRow): Promise<string | undefined> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const manager = creatingManager(call);
  // A manager has one override. Creating is safe to repeat, so the response names the existing one.
  const own = await findCreated(tx, call, "override");
  if (own !== undefined) return own.id;
  const id = makeId("override", deps.randomBytes(16));
  const created = await insertOverride(tx, {
    id,
    workspaceId,
    namespaceId: namespace.id,
    identifier: body.identifier,
    limit: body.limit,
    durationMs: body.duration,
    async: body.async,
    manager,
    createdAt: deps.nowMs(),
  });
  if (!created) return undefined;
  await record(tx, call, namespace, id);
  return id;
}

async function change(
  tx: PoolClient,
  call: Call<Body>,
  namespace: NamespaceRow,
  existing: OverrideRow,
): Promise<string> {
  const { body, caller, deps } = call;
  const { id } = existing;
  const manager = guardManaged(call, MANAGED.override, existing);
  const isSame =
    existing.max_count === body.limit &&
    existing.duration_ms === body.duration &&
    existing.async === body.async &&
    existing.manager === manager;
  if (isSame) return id;
  await adopting(call, MANAGED.override, () =>
    updateOverride(tx, {
      workspaceId: caller.workspaceId,
      id,
      limit: body.limit,
      durationMs: body.duration,
      async: body.async,
      manager,
      updatedAt: deps.nowMs(),
    }),
  );
  await record(tx, call, namespace, id);
  return id;
}

const record = (tx: PoolClient, call: Call<Body>, namespace: NamespaceRow, id: string): Promise<void> =>
  insertAudit(tx, call, [
    auditEvent(
      MANAGED.override,
      { id, identifier: call.body.identifier, namespace },
      "Updated",
      `Set override ${id} in rate-limit namespace ${namespace.id}`,
    ),
  ]);
