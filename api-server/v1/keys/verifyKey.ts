import { defineOpenV1Procedure } from "../procedure.ts";
import { verifyBySecret } from "./verify-by-secret.ts";
import { Body, ResponseBody } from "./verify-schemas.ts";

export const verifyKey = defineOpenV1Procedure({
  path: "keys.verifyKey",
  method: "POST",
  successor: "keys.verifyKey",
  effect: "read",
  summary: "Decide whether a key may be used",
  description:
    "Needs no root key. Answers 200 with a code: a key that may not be used is an outcome and not an error. Charges rate limits (all or none of them) and, last, credits.",
  permissions: "none",
  errors: ["forbidden", "workspace_rate_limited"],
  input: Body,
  response: ResponseBody,
  handle: verifyBySecret,
});
