import * as z from "zod";
import { makeKey } from "../../domain/keys/make-key.ts";
import { onApi, onRbac } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { ApiId, KeyId, Meta } from "../schemas.ts";
import { Environment, Expires, KeyName, Remaining, RoleName, Slug } from "./key-fields.ts";
import { LegacyRefill, toCredits } from "./legacy-credits.ts";
import { checkLegacyRatelimit, LegacyRatelimit, toRatelimit } from "./legacy-limit.ts";
import { ExternalId, OwnerId, ownerOfNew } from "./legacy-owner.ts";

export const Body = z.object({
  apiId: ApiId,
  prefix: z
    .string()
    .max(16)
    .regex(/^[a-zA-Z0-9_]*$/)
    .optional()
    .describe("Prefix of the key, followed by an underscore. Default: the prefix of the API.")
    .meta({ examples: ["prod"] }),
  name: KeyName.optional(),
  byteLength: z
    .int()
    .min(16)
    .max(255)
    .optional()
    .describe("Number of random bytes in the key. Default: the API's setting.")
    .meta({ examples: [16] }),
  externalId: ExternalId.optional(),
  ownerId: OwnerId.optional(),
  meta: Meta.optional(),
  roles: z.array(RoleName).max(100).optional().describe("Names of roles; missing roles are created."),
  permissions: z.array(Slug).max(1000).optional().describe("Slugs of permissions; missing permissions are created."),
  expires: Expires.optional(),
  remaining: Remaining.min(1).optional().describe("Credits of the key. Default: unlimited."),
  refill: LegacyRefill.optional(),
  ratelimit: LegacyRatelimit.optional(),
  enabled: z
    .boolean()
    .default(true)
    .describe("Whether the key is enabled. Verifying a disabled key returns the code DISABLED."),
  recoverable: z
    .boolean()
    .default(false)
    .describe("Whether to store an encrypted copy of the secret, so that it can be read later."),
  environment: Environment.optional(),
});
type Body = z.output<typeof Body>;

export const ResponseBody = z.object({
  keyId: KeyId,
  key: z
    .string()
    .describe("The secret of the key. It is returned only once, unless the key is recoverable.")
    .meta({ examples: ["prod_5Kd3NBUAdUnhyzen"] }),
});

const required = {
  createKey: onApi("create_key"),
  encryptKey: onApi("encrypt_key", "with `recoverable`"),
  createRole: onRbac("create_role", "when a role is new"),
  createPermission: onRbac("create_permission", "when a slug is new"),
};

export const createKey = defineV1Procedure({
  path: "keys.createKey",
  method: "POST",
  successor: "keys.createKey",
  effect: "change",
  summary: "Create a key",
  description:
    "Creates a key in an API. Only this response contains the secret: the server stores its hash, and an encrypted copy if the key is recoverable.",
  permissions: required,
  errors: ["api_not_found", "precondition_failed"],
  input: Body,
  check,
  response: ResponseBody,
  handle,
});

function check({ remaining, refill, ratelimit }: Body): void {
  toCredits({ remaining, refill });
  checkLegacyRatelimit(ratelimit);
}

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof ResponseBody>> {
  const { ownerId, externalId, remaining, refill, ratelimit, name, ...rest } = call.body;
  // Checks the permission before looking up the API, because the check requires only the API's id.
  call.require(required.createKey, rest.apiId);
  if (rest.recoverable) call.require(required.encryptKey, rest.apiId);
  const owner = ownerOfNew({ externalId, ownerId });
  const requested = {
    ...rest,
    name: name === "" ? undefined : name,
    externalId: owner,
    ownerId: owner,
    credits: toCredits({ remaining, refill }),
    ratelimits: ratelimit && [toRatelimit(ratelimit)],
  } as const;
  return makeKey(call, requested, required);
}
