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

/** Name of a root key. A blank name is rejected, because it describes nothing. */
export const RootKeyName = z
  .string()
  .min(3)
  .max(ROOT_KEY_NAME_LENGTH_MAX)
  .regex(/\S.*\S/)
  .describe("Purpose of the root key, shown in lists and audit rows. Need not be unique.")
  .meta({ examples: ["billing: creates keys of customers"] });

export const Environment = z
  .string()
  .regex(ROOT_KEY_ENVIRONMENT)
  .describe("Label of the environment that uses the root key. It does not restrict the root key.")
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
  .describe(
    "Permission tuples `<type>.<id or *>.<action>`. The caller must hold each of them as well. Duplicates count once.",
  )
  .meta({ examples: [["api.*.create_key", "api.api_9xKp3Rt6VwY1zAbC.verify_key"]] });

export const RootKeyExpires = Expires.describe(
  "When the root key expires, Unix milliseconds. A past time expires it immediately.",
);

export const Secret = z
  .string()
  .describe("The secret of the root key. Only this response contains it.")
  .meta({ examples: ["postern_3Ab9CdEfGhJkLmNpQrStUvWxYz123456"] });

export const RootKeyStart = z
  .string()
  .describe("First characters of the secret, to identify the root key.")
  .meta({ examples: ["postern_3Ab9"] });

export const RootKeyStateField = z
  .enum(ROOT_KEY_STATES)
  .describe("State of the root key. A root key that is both disabled and expired is `disabled`.");

const Tuple = z.string().meta({ examples: ["api.*.create_key"] });
const UtcDate = z.string().meta({ examples: ["2026-01-31"] });

const Finding = z.strictObject({
  kind: z
    .enum(ROOT_KEY_FINDINGS)
    .describe(
      "`old`: for more than 90 days. `never_used`: for a week. `expiring`: within 14 days. `unused_permissions`: not required by any request in 30 days. `too_wide`: has `*`, but was used for only one id.",
    ),
  permissions: z
    .array(Tuple)
    .optional()
    .describe("Permissions to which the finding refers; only for `unused_permissions` and `too_wide`."),
});

export const RootKeyOut = z.strictObject({
  rootKeyId: RootKeyId,
  name: z
    .string()
    .optional()
    .describe("Purpose of the root key. Can be missing if the root key was created on the command line.")
    .meta({ examples: ["billing: creates keys of customers"] }),
  start: RootKeyStart,
  environment: Environment.optional(),
  permissions: z
    .array(z.string().meta({ examples: ["api.*.create_key"] }))
    .describe("Permission tuples of the root key, sorted."),
  state: RootKeyStateField,
  enabled: z.boolean().describe("Whether the root key is enabled; requests with a disabled root key get 401."),
  expires: unixMs("When the root key expires, Unix milliseconds. Omitted if it never expires.").optional(),
  createdAt: unixMs("When the root key was created, Unix milliseconds."),
  lastUsedOn: UtcDate.describe("Last UTC date on which the root key was used, if known.").optional(),
  v1UsedOn: UtcDate.describe("Last UTC date on which the root key called the v1 API.").optional(),
  predecessorId: RootKeyId.describe("Id of the root key that this one replaces.").optional(),
  successorId: RootKeyId.describe("Id of the root key that replaces this one.").optional(),
  revision: z
    .int()
    .describe("Revision, which increases with each update of the root key.")
    .meta({ examples: [1] }),
  findings: z.array(Finding).describe("Findings about the root key that an administrator should review."),
});
export type RootKeyOut = z.output<typeof RootKeyOut>;

/** Details of one root key. */
export const RootKeyDetails = z.strictObject({
  ...RootKeyOut.shape,
  uses: z
    .array(
      z.strictObject({
        permission: Tuple.describe("Permission that was required by requests with the root key."),
        lastUsedOn: UtcDate.describe("Last UTC date on which a request required the permission."),
        onlyId: z
          .string()
          .optional()
          .describe("For a permission with `*`: the id of the object, if all requests were about the same object.")
          .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] }),
      }),
    )
    .describe("Permissions that the root key held and used. The latest minute may be missing."),
  usesSince: unixMs("Since when uses are recorded, Unix milliseconds.").optional(),
  narrowTo: z
    .array(Tuple)
    .optional()
    .describe("Smaller set of permissions that would have sufficed for the last 30 days, if known."),
});
export type RootKeyDetails = z.output<typeof RootKeyDetails>;

export const rootKeyNotFound = (rootKeyId: string): PublicError =>
  new PublicError("root_key_not_found", `There is no root key ${rootKeyId}.`);

/** Whether the call was made with this root key. */
export const isOwn = ({ caller: { actor } }: Pick<Call<unknown>, "caller">, rootKeyId: string): boolean =>
  actor.type === "rootkey" && actor.id === rootKeyId;

/** Returns the error for a change by which a caller would lock itself out, probably by accident. Another caller can make the change. */
export const rootKeyIsCaller = (rootKeyId: string): PublicError =>
  new PublicError(
    "root_key_is_caller",
    `Root key ${rootKeyId} authenticates this call, which would revoke or restrict this root key; use another one.`,
  );

/**
 * Returns the tuples of the request body in the form in which they are stored. Throws PublicError 400 with the position of the first invalid
 * tuple.
 */
export function readPermissions(given: readonly string[]): readonly string[] {
  const read = readTuples(given);
  if ("problem" in read) throw invalidField(`body.permissions[${read.at}]`, read.problem);
  return read.tuples;
}

/** Maximum number of tuples that an error lists; further tuples are only counted. */
const NAMED = 20;

/** Throws PublicError 403 unless the caller itself holds every tuple that it grants. The error lists the missing tuples. */
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
    `A caller can grant only permissions that it holds; this caller lacks ${named}${more}.`,
  );
}
