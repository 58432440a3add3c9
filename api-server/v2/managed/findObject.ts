import * as z from "zod";
import { DIGESTED_KINDS, findDigest } from "../../db/managed-digests.ts";
import { findOwn } from "../../db/managed-objects.ts";
import { findRemaining } from "../../db/orphaned-objects.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import {
  CLAIM_REQUIRED,
  CLAIMED_ERRORS,
  ClaimedKind,
  Digest,
  findManagedObject,
  Manager,
  managedNotFound,
  TO_LEARN_OF,
} from "./managed-kinds.ts";

const Body = z.strictObject({
  kind: ClaimedKind.describe("Kind of the object.").meta({ examples: ["role"] }),
  manager: Manager,
  left: z
    .boolean()
    .default(false)
    .describe("Whether to find objects that the manager released instead of objects that it manages."),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  kind: ClaimedKind.describe("Kind of the object, as in the request.").meta({ examples: ["role"] }),
  id: z
    .string()
    .describe("Id of the object.")
    .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] }),
  manager: Manager.describe("Manager, or last manager, as in the request."),
  async: z.boolean().optional().describe("Whether each process counts on its own; only for overrides."),
  namespaceId: z
    .string()
    .optional()
    .describe("Id of the rate-limit namespace; only for overrides.")
    .meta({ examples: ["rlns_3hJk8Lm2Np5Qr9St"] }),
  digest: Digest.optional().describe("Digest as in `managed.listDigests`; only for roles, namespaces and overrides."),
});
type Data = z.input<typeof Data>;

export const findObject = defineProcedure({
  path: "managed.findObject",
  effect: "read",
  summary: "Find the object that a manifest manages",
  description:
    "A manager has at most one object of a kind. Keys cannot be found this way, because a manager may have several. With `left`, the object that it released last and that nothing manages since. The answer comes from the store, so a client does not have to rely on what a manifest says about itself.",
  permissions: CLAIM_REQUIRED,
  errors: CLAIMED_ERRORS,
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof CLAIM_REQUIRED>): Promise<Data> {
  const { body, caller, deps } = call;
  const { kind, manager, left } = body;
  const { workspaceId } = caller;
  const notFound = () => managedNotFound(kind, `of the manager ${manager}`);
  const ref = { workspaceId, manager };
  const id = left ? await findRemaining(deps.db, kind, ref) : (await findOwn(deps.db, kind, ref))?.id;
  if (id === undefined) throw notFound();
  const found = await findManagedObject(deps.db, kind, { workspaceId, id });
  // The object may have been deleted or taken over between the two statements.
  if (found === undefined || found.manager !== (left ? null : manager)) throw notFound();
  call.require(TO_LEARN_OF[kind], found.permissionId);
  const { async, namespaceId } = found;
  const digested = DIGESTED_KINDS.find((one) => one === kind);
  const digest = left || digested === undefined ? undefined : await findDigest(deps.db, digested, ref);
  return {
    kind,
    id,
    manager,
    ...(async === undefined ? {} : { async }),
    ...(namespaceId === undefined ? {} : { namespaceId }),
    ...(digest === undefined ? {} : { digest }),
  };
}
