import { parseIpRange } from "../../../core/verification/ip-address.ts";
import {
  type ApiRef,
  type ApiSettings,
  type ApiSettingsRow,
  lockApiSettings,
  updateApiSettings,
} from "../../db/apis.ts";
import { changeOf } from "../../db/audit-change.ts";
import { inTransaction } from "../../db/transaction.ts";
import { type Administrator, insertAdministration } from "./administrator.ts";

/**
 * Maximum number of entries of an IP allow-list. It is limited because every pod of the API keeps the complete list in memory, as part of
 * the API's record.
 */
export const IP_ALLOW_LIST_MAX = 100;

export const DEFAULT_PREFIX = /^[a-zA-Z0-9_]{1,8}$/;

/** Returns an error message that says why a default prefix is invalid; `undefined` if it is valid. */
export const defaultPrefixProblem = (prefix: string): string | undefined =>
  DEFAULT_PREFIX.test(prefix) ? undefined : "a default prefix has 1 to 8 letters, digits and underscores";

/** Returns an error message that says why an IP allow-list is invalid; `undefined` if it is valid. An empty list allows every address. */
export function ipAllowListProblem(entries: readonly string[]): string | undefined {
  if (entries.length > IP_ALLOW_LIST_MAX) return `at most ${IP_ALLOW_LIST_MAX} addresses and ranges are possible`;
  const wrong = entries.find((entry) => parseIpRange(entry) === undefined);
  if (wrong === undefined) return undefined;
  return `"${wrong}" is not an IP address or range, such as 10.0.0.1, ::1, 10.0.0.0/8 or 2001:db8::/32`;
}

/**
 * Changes the given settings; writes nothing if nothing changes. Unlike `apis.updateApi`, this also changes a managed API, because manifests
 * do not contain these settings. Returns `undefined` if the workspace has no such API.
 */
export async function changeApi(
  administrator: Administrator,
  { workspaceId, apiId, change }: ApiRef & { change: Partial<ApiSettings> },
): Promise<ApiSettingsRow | undefined> {
  return inTransaction(administrator, async (tx) => {
    const row = await lockApiSettings(tx, { workspaceId, apiId });
    if (row === undefined) return undefined;
    const before = settingsOf(row);
    const after = { ...before, ...change };
    const changed = (Object.keys(after) as Array<keyof ApiSettings>).filter(
      (setting) => JSON.stringify(after[setting]) !== JSON.stringify(before[setting]),
    );
    if (changed.length === 0) return row;
    await updateApiSettings(tx, { workspaceId, apiId, settings: after, updatedAt: administrator.nowMs() });
    await insertAdministration(tx, administrator, workspaceId, [
      {
        event: "api.update",
        description: `Updated API ${apiId}: ${changed.join(", ")}`,
        targets: [{ type: "api", id: apiId, name: row.name }],
        ...changeOf({ ...before }, { ...after }),
      },
    ]);
    return lockApiSettings(tx, { workspaceId, apiId });
  });
}

/** An API as `admin.listApis` and `postern api update` return it. An absent setting has its default value. */
export interface DescribedApi {
  readonly apiId: string;
  readonly name: string;
  readonly deleteProtection: boolean;
  readonly keyEncryption: boolean;
  readonly defaultPrefix?: string;
  readonly defaultByteLength?: number;
  readonly ipAllowList?: string[];
  readonly manager?: string;
  readonly createdAt: number;
}

export const describeApi = (row: ApiSettingsRow): DescribedApi => ({
  apiId: row.id,
  name: row.name,
  deleteProtection: row.delete_protection,
  keyEncryption: row.key_encryption,
  ...(row.default_prefix === null ? {} : { defaultPrefix: row.default_prefix }),
  ...(row.default_byte_length === null ? {} : { defaultByteLength: row.default_byte_length }),
  ...(row.ip_allow_list.length === 0 ? {} : { ipAllowList: row.ip_allow_list }),
  ...(row.manager === null ? {} : { manager: row.manager }),
  createdAt: row.created_at,
});

/** Converts the settings of an API to the form that `updateApiSettings` accepts. */
export const settingsOf = (row: ApiSettingsRow): ApiSettings => ({
  ipAllowList: row.ip_allow_list,
  deleteProtection: row.delete_protection,
  defaultPrefix: row.default_prefix,
  defaultByteLength: row.default_byte_length,
  keyEncryption: row.key_encryption,
});
