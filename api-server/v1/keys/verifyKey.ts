import { defineOpenV1Procedure } from "../procedure.ts";
import { verifyBySecret } from "./verify-by-secret.ts";
import { Body, ResponseBody } from "./verify-schemas.ts";

export const verifyKey = defineOpenV1Procedure({
  path: "keys.verifyKey",
  method: "POST",
  successor: "keys.verifyKey",
  effect: "read",
  summary: "Verify a key",
  description:
    "Requires no root key. The status is 200 with a code, even for an invalid key. Charges either all rate limits or none, and then credits.",
  permissions: "none",
  errors: ["forbidden", "workspace_rate_limited"],
  input: Body,
  response: ResponseBody,
  handle: verifyBySecret,
});
