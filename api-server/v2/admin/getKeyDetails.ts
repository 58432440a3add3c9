import * as z from "zod";
import { Code } from "../../../core/verification/codes.ts";
import { keyState, REASONS } from "../../../core/verification/key-state.ts";
import { findKeptKey, type KeptKeyRow } from "../../db/kept-keys.ts";
import { listPermissionsOfKey, listPermissionsOfRoles } from "../../db/permissions.ts";
import { listRolesOfKey } from "../../db/roles.ts";
import { type FullKey, readFullKeys } from "../../domain/keys/full-keys.ts";
import { type LimitInUse, readLimitsInUse } from "../../domain/keys/limits-in-use.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { keyNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { toKeyOut } from "../key-reply.ts";
import { ApiIdOut, KeyId, KeyOut, RatelimitOut, unixMs } from "../schemas.ts";
import { CountOut } from "./access-schemas.ts";

const Body = z.strictObject({ keyId: KeyId });
type Body = z.output<typeof Body>;

const Limit = RatelimitOut.extend({
  of: z.enum(["key", "identity"]).describe("Owner of the limit. An identity's limits are shared by all of its keys."),
  isReplaced: z.boolean().describe("Whether this limit is overridden by the key's own limit of the same name."),
  current: CountOut.optional().describe("Current use of the limit; omitted while Redis is unreachable."),
});

const Data = z.strictObject({
  now: unixMs("The server's time, Unix milliseconds."),
  key: KeyOut.omit({ plaintext: true }).describe("The key in the form that `keys.getKey` returns."),
  apiId: ApiIdOut,
  apiName: z
    .string()
    .describe("Name of the API of the key.")
    .meta({ examples: ["payments"] }),
  ownerId: z
    .string()
    .optional()
    .describe("`ownerId` that a v1 call set for the key.")
    .meta({ examples: ["user_123"] }),
  manager: z
    .string()
    .optional()
    .describe("Manager of the key: `<cluster>/<kind>/<namespace>/<name>` of its manifest.")
    .meta({ examples: ["main/ApiKey/shop/billing"] }),
  state: z
    .strictObject({
      code: Code.describe(
        "Code that a verification would return now, if it required no permissions, came from an allowed address and cost one credit.",
      ),
      reasons: z
        .array(z.enum(REASONS))
        .describe("All reasons why the key is invalid; the first one determines the code."),
    })
    .describe("Whether the key is currently valid, and the reasons if it is not."),
  deletedAt: unixMs("When the key was deleted, Unix milliseconds.").optional(),
  apiDeletedAt: unixMs("When the key's API was deleted, Unix milliseconds.").optional(),
  identityDeletedAt: unixMs(
    "When the key's identity was deleted, Unix milliseconds. The key remains valid without it.",
  ).optional(),
  ipAllowList: z
    .array(z.string().meta({ examples: ["10.0.0.0/8"] }))
    .optional()
    .describe(
      "Allow-list of the API: the key can be used only from these addresses. Omitted if any address is allowed.",
    ),
  limits: z.array(Limit).describe("Limits of the key, then limits of its identity; each sorted by name."),
  roles: z
    .array(
      z.strictObject({
        roleId: z
          .string()
          .describe("Id of the role.")
          .meta({ examples: ["role_5tUv8Wx1Yz4AbCdE"] }),
        name: z
          .string()
          .describe("Name of the role.")
          .meta({ examples: ["editor"] }),
      }),
    )
    .describe("Roles of the key, sorted by name."),
  permissions: z
    .array(
      z.strictObject({
        slug: z
          .string()
          .describe("Slug of the permission.")
          .meta({ examples: ["documents.read"] }),
        isDirect: z.boolean().describe("Whether the key holds the permission directly."),
        roles: z
          .array(z.string().meta({ examples: ["editor"] }))
          .describe("Names of the roles that grant the permission to the key."),
      }),
    )
    .describe("Permissions of the key with their sources, sorted by slug."),
});
type Data = z.input<typeof Data>;

const required = { readKey: onApi("read_key") };

export const getKeyDetails = defineProcedure({
  path: "admin.getKeyDetails",
  effect: "read",
  summary: "Read a key with its state and the sources of its permissions",
  description:
    "Returns everything about a key, for display in the dashboard: the result of a verification now and the reasons for it, the key's limits with their current use, and the source of each permission. Also works for a deleted key until its retention ends. Nothing is counted.",
  permissions: required,
  errors: ["key_not_found"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller, deps } = call;
  const { keyId } = body;
  const { workspaceId } = caller;
  const row = await findKeptKey(deps.db, { workspaceId, keyId });
  if (row === undefined) throw keyNotFound(keyId);
  call.require(required.readKey, row.api_id);
  const [[whole], roles, direct] = await Promise.all([
    readFullKeys(deps, workspaceId, [row]),
    listRolesOfKey(deps.db, { workspaceId, keyId }),
    listPermissionsOfKey(deps.db, { workspaceId, keyId }),
  ]);
  if (whole === undefined) throw keyNotFound(keyId);
  const [throughRoles, limits] = await Promise.all([
    listPermissionsOfRoles(deps.db, { workspaceId, roleIds: roles.map(({ id }) => id) }),
    readLimitsInUse(deps, workspaceId, {
      keyId,
      own: whole.parts.ratelimits,
      identity: row.identity_id === null ? undefined : { id: row.identity_id, limits: whole.parts.identity_ratelimits },
    }),
  ]);
  const roleNames = new Map(roles.map(({ id, name }) => [id, name]));
  const nowMs = deps.nowMs();
  return {
    now: nowMs,
    key: toKeyOut(whole),
    apiId: row.api_id,
    apiName: row.api_name,
    ...(row.owner_id === null ? {} : { ownerId: row.owner_id }),
    ...(row.manager === null ? {} : { manager: row.manager }),
    state: stateOf(row, whole, limits, nowMs),
    ...(row.deleted_at === null ? {} : { deletedAt: row.deleted_at }),
    ...(row.api_deleted_at === null ? {} : { apiDeletedAt: row.api_deleted_at }),
    ...(row.identity_deleted_at === null ? {} : { identityDeletedAt: row.identity_deleted_at }),
    ...(row.ip_allow_list.length === 0 ? {} : { ipAllowList: row.ip_allow_list }),
    limits: limits.map(toLimit),
    roles: roles.map(({ id, name }) => ({ roleId: id, name })),
    permissions: permissionsWithSources(
      direct.map(({ slug }) => slug),
      throughRoles.map(({ slug, role_id }) => ({ slug, role: roleNames.get(role_id) ?? role_id })),
    ),
  };
}

function stateOf(row: KeptKeyRow, { remaining }: FullKey, limits: readonly LimitInUse[], nowMs: number): Data["state"] {
  const isReached = ({ row: limit, isReplaced, current }: LimitInUse): boolean =>
    limit.auto_apply && !isReplaced && current !== undefined && current.remaining < 1;
  const state = keyState(
    {
      isDeleted: row.deleted_at !== null,
      isApiDeleted: row.api_deleted_at !== null,
      isWorkspaceEnabled: row.workspace_enabled,
      enabled: row.enabled,
      expiresMs: row.expires_at ?? undefined,
      limitsReached: limits.filter(isReached).length,
      remainingCredits: remaining,
    },
    nowMs,
  );
  return { code: state.code, reasons: [...state.reasons] };
}

const toLimit = ({ row, of, isReplaced, current }: LimitInUse): Data["limits"][number] => ({
  id: row.id,
  name: row.name,
  limit: row.max_count,
  duration: row.duration_ms,
  autoApply: row.auto_apply,
  of,
  isReplaced,
  ...(current === undefined
    ? {}
    : { current: { used: current.used, remaining: current.remaining, reset: current.resetMs } }),
});

/** Returns each permission slug once, in sorted order, with the sorted names of the roles that grant it. */
function permissionsWithSources(
  direct: readonly string[],
  throughRoles: readonly { readonly slug: string; readonly role: string }[],
): Data["permissions"] {
  const held = new Set(direct);
  const roles = Map.groupBy(throughRoles, ({ slug }) => slug);
  return [...new Set([...held, ...roles.keys()])].sort().map((slug) => ({
    slug,
    isDirect: held.has(slug),
    roles: (roles.get(slug) ?? []).map(({ role }) => role).sort(),
  }));
}
