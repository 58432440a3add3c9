import * as z from "zod";
import { DIGESTED_KINDS, listDigestsOf } from "../../db/managed-digests.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { Cluster, Cursor, LongLimit } from "../schemas.ts";
import { Digest, Manager, TO_LEARN_OF, TO_READ } from "./managed-kinds.ts";

const Body = z.strictObject({
  kind: z
    .enum(DIGESTED_KINDS)
    .describe("Kind of the objects.")
    .meta({ examples: ["role"] }),
  cluster: Cluster.describe("Returns only objects whose manager's name begins with this cluster."),
  limit: LongLimit,
  cursor: Cursor.optional(),
});
type Body = z.output<typeof Body>;

const ManagedDigest = z.strictObject({
  id: z
    .string()
    .describe("Id of the object.")
    .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] }),
  manager: Manager,
  digest: Digest,
});
type ManagedDigest = z.input<typeof ManagedDigest>;

const { readRole, readNamespace, readOverride } = TO_READ;
const required = { readRole, readNamespace, readOverride };

export const listDigests = defineListProcedure({
  path: "managed.listDigests",
  effect: "read",
  summary: "List digests of managed objects, to find changes",
  description:
    "For clients that keep many objects in sync with manifests. Lists one digest per object, in the order of the objects' ids; a digest changes whenever anything changes that a manifest determines. The root key must be allowed to read each object.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  item: ManagedDigest,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<ManagedDigest>> {
  const { body, caller, deps } = call;
  const { kind, cluster, limit, cursor = "" } = body;
  const { workspaceId } = caller;
  const rows = await listDigestsOf(deps.db, kind, { workspaceId, cluster, cursor, rowsMax: limit + 1 });
  const shown = rows.slice(0, limit);
  for (const { id, namespace_id: namespaceId } of shown) {
    call.require(TO_LEARN_OF[kind], kind === "role" ? undefined : (namespaceId ?? id));
  }
  return { items: shown.map(({ id, manager, digest }) => ({ id, manager, digest })), cursor: rows[limit]?.id };
}
