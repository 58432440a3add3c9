import * as z from "zod";
import { hashKey } from "../../../core/keys/key-string.ts";
import { findKey, findKeyHash } from "../../db/keys.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { invalidField, keyNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { KeyId } from "../schemas.ts";
import { EXPLAIN_ERRORS, explainCall, findGate } from "./explain-call.ts";
import { ASKED, ExplainedOut, StoresOut } from "./explain-schemas.ts";
import { VERIFY_KEY } from "./key-verification.ts";
import { Body as VerifyBody } from "./verify-schemas.ts";

const Body = z.strictObject({
  key: VerifyBody.shape.key
    .optional()
    .describe(
      "The secret of the key; alternative: `keyId`. It is hashed immediately, and neither stored nor returned.",
    ),
  keyId: KeyId.optional(),
  ...ASKED,
  clientIp: ASKED.clientIp.describe(
    "The client's address. Without it that of this call, as in `keys.verifyKey`; at a gate the allow-list of the API is then not checked.",
  ),
});
type Body = z.output<typeof Body>;

const Data = ExplainedOut.extend({
  stores: StoresOut.optional().describe(
    "The record of the key in Postgres and in Redis; omitted if the key is not found.",
  ),
});
type Data = z.input<typeof Data>;

const required = { verifyKey: VERIFY_KEY, readKey: onApi("read_key") };

export const explainVerification = defineProcedure({
  path: "keys.explainVerification",
  effect: "read",
  summary: "Explain what a verification would decide",
  description:
    "Says what `keys.verifyKey`, or with `policyId` a request at a gate, would answer now: each step with the value that it saw, where that comes from and how old it is, and limits and credits as they stand. The code that verifies decides it, as a dry run: nothing is counted, spent, stored or recorded. With `policyId` the permissions are needed on the API of the policy too.",
  permissions: required,
  errors: EXPLAIN_ERRORS,
  addition: true,
  body: Body,
  data: Data,
  handle,
});

type ExplainCall = Call<Body, typeof required>;

async function handle(call: ExplainCall): Promise<Data> {
  // Checks permissions before looking up the key, so that the error reveals nothing about it.
  for (const one of [required.verifyKey, required.readKey]) if (!call.holdsForSome(one)) call.require(one);
  const { body, caller, deps, origin } = call;
  const { workspaceId } = caller;
  if ((body.key === undefined) === (body.keyId === undefined)) {
    throw invalidField("body.keyId", "expected either body.keyId or body.key");
  }
  const gate = await findGate(deps, workspaceId, body);
  if (gate !== undefined) requireBoth(call, gate.api_id);
  const hash = body.key === undefined ? await findHash(call, body.keyId ?? "") : hashKey(body.key);
  const mayVerify = (apiId: string): boolean =>
    call.holds(required.verifyKey, apiId) && call.holds(required.readKey, apiId);
  const clientIp = body.clientIp ?? (gate === undefined ? origin.clientIp : undefined);
  const { stores, ...explained } = await explainCall({
    deps,
    workspaceId,
    hash,
    asked: body,
    gate,
    mayVerify,
    clientIp,
  });
  return explained.keyId === undefined ? explained : { ...explained, stores };
}

function requireBoth(call: ExplainCall, apiId: string): void {
  call.require(required.readKey, apiId);
  call.require(required.verifyKey, apiId);
}

/** Returns the hash of a key. Like keys.getKey, throws PublicError 404 if the key does not exist, or 403 if a permission is missing. */
async function findHash(call: ExplainCall, keyId: string): Promise<string> {
  const ref = { workspaceId: call.caller.workspaceId, keyId };
  const row = await findKey(call.deps.db, ref);
  if (row === undefined) throw keyNotFound(keyId);
  requireBoth(call, row.api_id);
  const hash = await findKeyHash(call.deps.db, ref);
  if (hash === undefined) throw keyNotFound(keyId);
  return hash;
}
