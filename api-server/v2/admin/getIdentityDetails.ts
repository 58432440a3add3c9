import * as z from "zod";
import { findIdentity } from "../../db/identities.ts";
import { findIdentityUsage } from "../../db/identity-usage.ts";
import { listRatelimitsOfIdentity } from "../../db/ratelimits.ts";
import { onIdentity } from "../../domain/permissions/required-permissions.ts";
import { readCounts } from "../../domain/ratelimits/read-counts.ts";
import { identityNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { toIdentityOut, toRatelimitOut } from "../key-reply.ts";
import { IdentityName, IdentityOut, RatelimitOut, unixMs } from "../schemas.ts";
import { CountOut, usesOut } from "./access-schemas.ts";

const Body = z.strictObject({ identity: IdentityName });
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  now: unixMs("The server's time, Unix milliseconds."),
  identity: IdentityOut.omit({ ratelimits: true }).describe("The identity with its metadata."),
  createdAt: unixMs("When the identity was created, Unix milliseconds."),
  updatedAt: unixMs("When the identity was last changed, Unix milliseconds.").optional(),
  keyCount: usesOut("How many live keys it has"),
  limits: z
    .array(
      RatelimitOut.extend({
        current: CountOut.optional().describe("Current use of the limit; omitted while Redis is unreachable."),
      }),
    )
    .describe("Limits that all keys of the identity share, sorted by name."),
});
type Data = z.input<typeof Data>;

const required = { readIdentity: onIdentity("read_identity") };

export const getIdentityDetails = defineProcedure({
  path: "admin.getIdentityDetails",
  effect: "read",
  summary: "Read an identity with the current use of its limits",
  description:
    "Returns an identity for display in the dashboard. Nothing is counted. A key that has its own limit with the same name counts against that one instead.",
  permissions: required,
  errors: ["identity_not_found"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const row = await findIdentity(deps.db, { workspaceId, identity: body.identity });
  if (row === undefined) throw identityNotFound(body.identity);
  call.require(required.readIdentity, row.id);
  const ref = { workspaceId, identityId: row.id };
  const [limits, uses] = await Promise.all([listRatelimitsOfIdentity(deps.db, ref), findIdentityUsage(deps.db, ref)]);
  const counts = await readCounts(
    deps,
    limits.map(({ name, max_count: limit, duration_ms: durationMs }) => ({
      workspaceId,
      scope: { kind: "name", value: name },
      identifier: row.id,
      limit,
      durationMs,
    })),
  );
  return {
    now: deps.nowMs(),
    identity: toIdentityOut(row, []),
    createdAt: uses.created_at,
    ...(uses.updated_at === null ? {} : { updatedAt: uses.updated_at }),
    keyCount: uses.keys,
    limits: limits.map((limit, i) => {
      const count = counts?.[i];
      return {
        ...toRatelimitOut(limit),
        ...(count === undefined
          ? {}
          : { current: { used: count.used, remaining: count.remaining, reset: count.resetMs } }),
      };
    }),
  };
}
