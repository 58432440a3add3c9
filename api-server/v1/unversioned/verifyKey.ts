import type * as z from "zod";
import type { OpenCall } from "../../procedure.ts";
import { verifyBySecret } from "../keys/verify-by-secret.ts";
import { Body as FullBody, ResponseBody as FullResponse } from "../keys/verify-schemas.ts";
import { defineOpenV1Procedure, OtherResponse } from "../procedure.ts";

const Body = FullBody.pick({ key: true, apiId: true });
type Body = z.output<typeof Body>;

const ResponseBody = FullResponse.pick({ valid: true, keyId: true, ownerId: true, meta: true, expires: true })
  .extend(FullResponse.pick({ remaining: true, ratelimit: true }).shape)
  .extend({ code: FullResponse.shape.code.optional().describe("Reason for a rejection; omitted for a valid key.") });
type ResponseBody = z.input<typeof ResponseBody>;

/** Outcomes that are sent with status 404. All others are sent with 200. */
const IS_404: ReadonlySet<string> = new Set(["NOT_FOUND", "EXPIRED"]);

export const verifyKey = defineOpenV1Procedure({
  path: "keys/verify",
  method: "POST",
  successor: "keys.verifyKey",
  effect: "read",
  summary: "Verify a key",
  description: "Oldest form of `keys.verifyKey`, with fewer fields. Responds with 404 for an unknown or expired key.",
  permissions: "none",
  errors: ["forbidden", "workspace_rate_limited"],
  input: Body,
  response: ResponseBody,
  otherResponses: { 404: ResponseBody },
  handle,
});

async function handle({ body: { key, apiId }, ...call }: OpenCall<Body>): Promise<ResponseBody | OtherResponse> {
  const full = await verifyBySecret({ ...call, body: { key, apiId } });
  const { valid, code, keyId, ownerId, meta, expires, remaining, ratelimit } = JSON.parse(full.json) as z.input<
    typeof FullResponse
  >;
  if (valid) return { valid, keyId, ownerId, meta, expires, remaining, ratelimit };
  const refused: ResponseBody = { valid, code, remaining, ratelimit };
  return IS_404.has(code) ? new OtherResponse(404, refused) : refused;
}
