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
      "The secret of the key. Alternatively, pass `keyId`. The secret is hashed immediately, and neither stored nor returned.",
    ),
  keyId: KeyId.optional(),
  ...ASKED,
  clientIp: ASKED.clientIp.describe(
    "The client's address. Default: the address of this call, as in `keys.verifyKey`. For a request at a gate, there is no default, and without an address, the API's allow-list is not checked.",
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
    "Returns what `keys.verifyKey` or, with `policyId`, a gate would respond now: each step with the value that it checked, the source and the age of that value, and the current limits and credits. The verification runs as a dry run, with the same code: nothing is counted, spent, stored or recorded. With `policyId`, the permissions are also required on the policy's API.",
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
