import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { KEY_HASH } from "../../../core/keys/key-hash.ts";
import { findKeyHash } from "../../db/keys.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { EXPLAIN_ERRORS, explainCall, findGate } from "../keys/explain-call.ts";
import { ASKED, ExplainedOut, StoresOut } from "../keys/explain-schemas.ts";
import { KeyId } from "../schemas.ts";

const Body = z.strictObject({
  keyId: KeyId.optional(),
  keyHash: z
    .string()
    .regex(KEY_HASH)
    .optional()
    .describe("SHA-256 of the secret in base64, instead of `keyId`. This procedure never accepts the secret itself.")
    .meta({ examples: ["n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="] }),
  ...ASKED,
  clientIp: ASKED.clientIp.describe("Client address. Without it, the allow-list of the API is not checked."),
});
type Body = z.output<typeof Body>;

const Data = ExplainedOut.extend({ stores: StoresOut.describe("The record of the key in Postgres and in Redis.") });
type Data = z.input<typeof Data>;

const required = { explain: onWorkspace("explain") };

export const explainVerification = defineProcedure({
  path: "admin.explainVerification",
  effect: "read",
  summary: "Explain what a verification would decide",
  description:
    "Runs the steps of a verification as a dry run, with the same code: nothing is counted, spent, stored or recorded. Explains a call of `keys.verifyKey` or, if a policy is given, a request at its gate.",
  permissions: required,
  errors: EXPLAIN_ERRORS,
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  call.require(required.explain);
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const hash = await readHash(call);
  const gate = await findGate(deps, workspaceId, body);
  return explainCall({ deps, workspaceId, hash, asked: body, gate, mayVerify: "all", clientIp: body.clientIp });
}

async function readHash({ body, caller, deps }: Call<Body>): Promise<string> {
  const { keyId, keyHash } = body;
  if ((keyId === undefined) === (keyHash === undefined)) {
    throw new PublicError("invalid_input", "The body must have either `keyId` or `keyHash`.", {
      errors: [{ location: "body.keyId", message: "expected either this member or body.keyHash" }],
    });
  }
  if (keyHash !== undefined) return keyHash;
  const hash = await findKeyHash(deps.db, { workspaceId: caller.workspaceId, keyId: keyId ?? "" });
  if (hash === undefined) throw new PublicError("key_not_found", `There is no key ${keyId} in the workspace.`);
  return hash;
}
