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

/* Request and response of keys.verifyKey (api-v2.md sections 12 and 12.1). */

/** Limit in a request; unknown members are ignored. */
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
    .describe("Units to consume; 0 checks the limit without consuming.")
    .meta({ examples: [1] }),
  limit: z
    .int()
    .min(0)
    .optional()
    .describe("Units per window; overrides the stored limit.")
    .meta({ examples: [100] }),
  duration: z
    .int()
    .min(0)
    .optional()
    .describe("Window length in ms, at least 1000; overrides the stored limit.")
    .meta({ examples: [60_000] }),
});

export const Body = z.strictObject({
  key: z
    .string()
    .min(1)
    .max(KEY_LENGTH_MAX)
    .describe("The secret of the key to verify.")
    .meta({ examples: ["prod_5Kd3NBUAdUnhyzen"] }),
  tags: z
    .array(z.string().min(1).max(512))
    .max(20)
    .optional()
    .describe("Tags for analytics. They must not contain secrets.")
    .meta({ examples: [["path=/v1/orders"]] }),
  permissions: z
    .string()
    .min(1)
    .max(1000)
    .optional()
    .describe("Permission query that the key must satisfy: slugs with AND, OR and parentheses.")
    .meta({ examples: ["documents.read AND (users.view OR users.admin)"] }),
  credits: z
    .strictObject({
      cost: z
        .int()
        .min(0)
        .max(1_000_000_000_000)
        .describe("Credits to spend; 0 checks them without spending.")
        .meta({ examples: [1] }),
    })
    .optional()
    .describe("Credits that this verification spends. Default: 1."),
  ratelimits: z
    .array(RequestedRatelimit)
    .max(50)
    .optional()
    .describe(
      "Limits to charge in addition to those with `autoApply`. The last of several entries with one name applies.",
    ),
  migrationId: z
    .string()
    .max(256)
    .optional()
    .describe("Id of the migration that imported the key.")
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
    .describe("Units that remain in the window.")
    .meta({ examples: [99] }),
  reset: unixMs("End of the window, Unix milliseconds."),
  autoApply: AutoApplyOut,
});

export const Data = z.strictObject({
  valid: z.boolean().describe("Whether the key is valid for this request: true only for the code VALID."),
  code: Code.describe(
    "Result of the verification, or the first reason for a rejection. `FORBIDDEN`: the workspace is disabled, or the caller's address is not on the API's allow-list of addresses and CIDR ranges.",
  ),
  keyId: KeyId.optional(),
  enabled: z.boolean().optional().describe("Whether the key is enabled."),
  name: KeyNameOut.optional(),
  meta: Meta.optional(),
  expires: unixMs("When the key expires, Unix milliseconds.").optional(),
  permissions: SlugsOut.optional(),
  roles: RoleNamesOut.optional(),
  identity: IdentityOut.optional().describe("Identity that owns the key."),
  credits: z
    .int()
    .optional()
    .describe("Remaining credits after the verification; omitted if they are unlimited.")
    .meta({ examples: [999] }),
  ratelimits: z.array(CheckedRatelimit).optional().describe("Limits that were checked, sorted by name."),
});
export type Data = z.input<typeof Data>;
