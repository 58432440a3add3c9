import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { ROOT_KEY_FINDINGS } from "../../../core/permissions/root-key-findings.ts";
import { ROOT_KEY_STATES } from "../../db/root-keys.ts";
import {
  ROOT_KEY_ENVIRONMENT,
  ROOT_KEY_NAME_LENGTH_MAX,
  ROOT_KEY_PERMISSIONS_MAX,
  readTuples,
} from "../../domain/administration/root-keys.ts";
import type { Grants, RequiredPermission } from "../../domain/permissions/required-permissions.ts";
import { invalidField } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { Expires, unixMs } from "../schemas.ts";

/* Shared fields of the root key procedures (api-v2.md section 24.4). */

export const RootKeyId = z
  .string()
  .min(3)
  .max(255)
  .regex(/^[a-zA-Z0-9_]+$/)
  .describe("Id of the root key, not its secret.")
  .meta({ examples: ["rk_8sTu0Vw2Xy4Za6Bc"] });

/** Rejects a blank name, because it describes nothing. */
export const RootKeyName = z
  .string()
  .min(3)
  .max(ROOT_KEY_NAME_LENGTH_MAX)
  .regex(/\S.*\S/)
  .describe("What the root key is for; lists and audit rows show it. Need not be unique.")
  .meta({ examples: ["billing: creates keys of customers"] });

export const Environment = z
  .string()
  .regex(ROOT_KEY_ENVIRONMENT)
  .describe("A label of the place that uses the root key. It restricts nothing.")
  .meta({ examples: ["production"] });

export const RootKeyTuples = z
  .array(
    z
      .string()
      .max(300)
      .meta({ examples: ["api.*.create_key"] }),
  )
  .min(1)
  .max(ROOT_KEY_PERMISSIONS_MAX)
  .describe("Tuples `<type>.<id or *>.<action>` that the caller holds, too. One that comes twice counts once.")
  .meta({ examples: [["api.*.create_key", "api.api_9xKp3Rt6VwY1zAbC.verify_key"]] });

export const RootKeyExpires = Expires.describe(
  "When the root key expires, Unix milliseconds. A past time makes it expired at once.",
);

export const Secret = z
  .string()
  .describe("The secret. It is in this answer alone.")
  .meta({ examples: ["postern_3Ab9CdEfGhJkLmNpQrStUvWxYz123456"] });

export const RootKeyStart = z
  .string()
  .describe("The first characters of the secret, to recognize the root key.")
  .meta({ examples: ["postern_3Ab9"] });

export const RootKeyStateField = z
  .enum(ROOT_KEY_STATES)
  .describe("`active`: it can be used. A disabled one is `disabled`, whenever it expires.");

const Tuple = z.string().meta({ examples: ["api.*.create_key"] });
const UtcDate = z.string().meta({ examples: ["2026-01-31"] });

const Finding = z.strictObject({
  kind: z
    .enum(ROOT_KEY_FINDINGS)
    .describe(
      "`old`: for more than 90 days. `never_used`: for a week. `expiring`: within 14 days. `unused_permissions`: not asked for in 30 days. `too_wide`: with `*`, and asked for one id alone.",
    ),
  permissions: z.array(Tuple).optional().describe("Those that the last two kinds are about."),
});

export const RootKeyOut = z.strictObject({
  rootKeyId: RootKeyId,
  name: z
    .string()
    .optional()
    .describe("What it is for. Root keys of the command line may have none.")
    .meta({ examples: ["billing: creates keys of customers"] }),
  start: RootKeyStart,
  environment: Environment.optional(),
  permissions: z
    .array(z.string().meta({ examples: ["api.*.create_key"] }))
    .describe("The tuples that it holds, sorted."),
  state: RootKeyStateField,
  enabled: z.boolean().describe("A request with a disabled root key is 401."),
  expires: unixMs("When it expires, Unix milliseconds. Left out when it never does.").optional(),
  createdAt: unixMs("When it was created, Unix milliseconds."),
  lastUsedOn: UtcDate.describe("The last UTC date on which it was used, when one is known.").optional(),
  v1UsedOn: UtcDate.describe("The last UTC date on which it called v1 of the API.").optional(),
  predecessorId: RootKeyId.describe("The root key that it replaces.").optional(),
  successorId: RootKeyId.describe("The root key that replaces it.").optional(),
  revision: z
    .int()
    .describe("Grows with each update of the root key.")
    .meta({ examples: [1] }),
  findings: z.array(Finding).describe("What an administrator should know of it."),
});
export type RootKeyOut = z.output<typeof RootKeyOut>;

/** Details of one root key. */
export const RootKeyDetails = z.strictObject({
  ...RootKeyOut.shape,
  uses: z
    .array(
      z.strictObject({
        permission: Tuple.describe("What it was asked for."),
        lastUsedOn: UtcDate.describe("The last UTC date on which it was asked for."),
        onlyId: z
          .string()
          .optional()
          .describe("The id for which a permission with `*` was asked, when that was always the same one.")
          .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] }),
      }),
    )
    .describe("The permissions that it held and was asked for. A use may be missing for a minute."),
  usesSince: unixMs("Since when uses are noted, Unix milliseconds.").optional(),
  narrowTo: z
    .array(Tuple)
    .optional()
    .describe("The permissions that would have been enough for the last 30 days, when those are known, and fewer."),
});
export type RootKeyDetails = z.output<typeof RootKeyDetails>;

export const rootKeyNotFound = (rootKeyId: string): PublicError =>
  new PublicError("root_key_not_found", `There is no root key ${rootKeyId}.`);

/** Whether the caller uses this root key. */
export const isOwn = ({ caller: { actor } }: Pick<Call<unknown>, "caller">, rootKeyId: string): boolean =>
  actor.type === "rootkey" && actor.id === rootKeyId;

/** Error that prevents a caller from accidentally locking itself out; another caller can make the change. */
export const rootKeyIsCaller = (rootKeyId: string): PublicError =>
  new PublicError(
    "root_key_is_caller",
    `Root key ${rootKeyId} sends this call, and would be revoked or narrowed by it.`,
  );

/** Returns the tuples of the body as stored. Throws PublicError 400 with the position of the first invalid one. */
export function readPermissions(given: readonly string[]): readonly string[] {
  const read = readTuples(given);
  if ("problem" in read) throw invalidField(`body.permissions[${read.at}]`, read.problem);
  return read.tuples;
}

/** Maximum number of tuples that an error names; further ones are counted. */
const NAMED = 20;

/** Throws PublicError 403, which names the missing tuples, unless the caller holds all of these tuples itself. */
export function requireToGrant(
  { beyond }: Pick<Grants<RequiredPermission>, "beyond">,
  tuples: readonly string[],
): void {
  const lacked = beyond(tuples);
  if (lacked.length === 0) return;
  const named = lacked.slice(0, NAMED).join(", ");
  const more = lacked.length > NAMED ? ` and ${lacked.length - NAMED} more` : "";
  throw new PublicError(
    "forbidden",
    `A root key gets only permissions that the caller holds too. It lacks ${named}${more}.`,
  );
}
