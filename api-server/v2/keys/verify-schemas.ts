import * as z from "zod";
import { KEY_LENGTH_MAX } from "../../../core/keys/key-hash.ts";
import { Code } from "../../../core/verification/codes.ts";
import {
  AutoApplyOut,
  DurationOut,
  IdentityOut,
  KeyId,
  KeyNameOut,
  LimitOut,
  Meta,
  RoleNamesOut,
  SlugsOut,
  unixMs,
} from "../schemas.ts";

/* Request and response of keys.verifyKey (api-v2.md sections 13.4 and 12.1). */

/** Ignores unknown members. */
const RequestedRatelimit = z.object({
  name: z
    .string()
    .min(3)
    .max(255)
    .describe("Name of a stored limit, or of a limit that this entry defines.")
    .meta({ examples: ["requests"] }),
  cost: z
    .int()
    .min(0)
    .default(1)
    .describe("Units to consume; 0 only checks.")
    .meta({ examples: [1] }),
  limit: z
    .int()
    .min(0)
    .optional()
    .describe("Units per window, instead of the stored limit's.")
    .meta({ examples: [100] }),
  duration: z
    .int()
    .min(0)
    .optional()
    .describe("Length of the window, ms, instead of the stored limit's; at least 1000.")
    .meta({ examples: [60_000] }),
});

export const Body = z.strictObject({
  key: z
    .string()
    .min(1)
    .max(KEY_LENGTH_MAX)
    .describe("The secret.")
    .meta({ examples: ["prod_5Kd3NBUAdUnhyzen"] }),
  tags: z
    .array(z.string().min(1).max(512))
    .max(20)
    .optional()
    .describe("Only for analytics; do not put secrets here.")
    .meta({ examples: [["path=/v1/orders"]] }),
  permissions: z
    .string()
    .min(1)
    .max(1000)
    .optional()
    .describe("The permissions that the key must have: slugs with AND, OR and parentheses.")
    .meta({ examples: ["documents.read AND (users.view OR users.admin)"] }),
  credits: z
    .strictObject({
      cost: z
        .int()
        .min(0)
        .max(1_000_000_000_000)
        .describe("Credits to spend; 0 only checks.")
        .meta({ examples: [1] }),
    })
    .optional()
    .describe("Omitted: a cost of 1."),
  ratelimits: z
    .array(RequestedRatelimit)
    .max(50)
    .optional()
    .describe("Limits to charge besides those with `autoApply`; of entries with the same name the last one counts."),
  migrationId: z
    .string()
    .max(256)
    .optional()
    .describe("The migration that imported the key.")
    .meta({ examples: ["migration_2024"] }),
});
export type Body = z.output<typeof Body>;

const CheckedRatelimit = z.strictObject({
  id: z
    .string()
    .describe("Id of the limit; empty for a limit that the request defines.")
    .meta({ examples: ["rl_2bCd5Ef8Gh1Jk4Lm"] }),
  name: z
    .string()
    .describe("Name of the limit.")
    .meta({ examples: ["requests"] }),
  limit: LimitOut,
  duration: DurationOut,
  exceeded: z.boolean().describe("Whether this limit was exceeded."),
  remaining: z
    .int()
    .describe("Units left in the window.")
    .meta({ examples: [99] }),
  reset: unixMs("End of the window, Unix milliseconds."),
  autoApply: AutoApplyOut,
});

export const Data = z.strictObject({
  valid: z.boolean().describe("True only for the code VALID."),
  code: Code.describe(
    "The result, or the first reason for a refusal. `FORBIDDEN`: the workspace is disabled, or the caller's address is not on the IP allow-list of the API, which has addresses and CIDR ranges.",
  ),
  keyId: KeyId.optional(),
  enabled: z.boolean().optional().describe("Whether the key is enabled."),
  name: KeyNameOut.optional(),
  meta: Meta.optional(),
  expires: unixMs("When the key expires, Unix milliseconds.").optional(),
  permissions: SlugsOut.optional(),
  roles: RoleNamesOut.optional(),
  identity: IdentityOut.optional().describe("The owner of the key."),
  credits: z
    .int()
    .optional()
    .describe("Credits left after the call; only for limited keys.")
    .meta({ examples: [999] }),
  ratelimits: z.array(CheckedRatelimit).optional().describe("The limits that were checked, by name."),
});
export type Data = z.input<typeof Data>;
