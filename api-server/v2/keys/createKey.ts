import * as z from "zod";
import { makeKey } from "../../domain/keys/make-key.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { NewKey } from "../key-reply.ts";
import { Credits, Expires, ExternalId, Meta, RatelimitsIn, RoleName, ShortApiId, Slug } from "../schemas.ts";

const Body = z.strictObject({
  apiId: ShortApiId,
  prefix: z
    .string()
    .min(1)
    .max(16)
    .regex(/^[a-zA-Z0-9_]+$/)
    .optional()
    .describe("Prefix of the key, followed by an underscore.")
    .meta({ examples: ["prod"] }),
  name: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("Display name of the key.")
    .meta({ examples: ["Billing"] }),
  byteLength: z
    .int()
    .min(16)
    .max(255)
    .optional()
    .describe("Number of random bytes in the key.")
    .meta({ examples: [16] }),
  externalId: ExternalId.optional(),
  meta: Meta.optional(),
  roles: z.array(RoleName).max(100).optional().describe("Names of existing roles."),
  permissions: z.array(Slug).max(1000).optional().describe("Slugs of permissions; missing permissions are created."),
  expires: Expires.optional(),
  credits: Credits.optional().describe("Credits of the key. Default: unlimited."),
  ratelimits: RatelimitsIn.optional().describe("If several entries have the same name, the last one applies."),
  enabled: z
    .boolean()
    .default(true)
    .describe("Whether the key is enabled. Verifying a disabled key returns the code DISABLED."),
  recoverable: z
    .boolean()
    .default(false)
    .describe("Whether to store an encrypted copy of the secret, so that it can be read later."),
});
type Body = z.output<typeof Body>;

const required = {
  createKey: onApi("create_key"),
  encryptKey: onApi("encrypt_key", "with `recoverable`"),
};

export const createKey = defineProcedure({
  path: "keys.createKey",
  effect: "change",
  summary: "Create a key",
  description:
    "Creates a key in an API. Only this response contains the secret: the server stores its hash, and an encrypted copy if the key is recoverable. If a role does not exist, nothing is created.",
  permissions: required,
  errors: ["api_not_found", "role_not_found", "precondition_failed", "managed_exists"],
  body: Body,
  data: NewKey,
  handle,
});

function handle(call: Call<Body, typeof required>): Promise<NewKey> {
  return makeKey(call, call.body, required);
}
