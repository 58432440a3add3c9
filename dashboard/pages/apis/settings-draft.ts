import type { Input } from "../../../core/api/procedures.ts";
import type { Row } from "../../api/queries.ts";
import { parseCount } from "../../components/duration.ts";

/* Settings of an API as people type them. */

/** Number of random bytes of a new key if the API has no setting. */
export const USUAL_BYTES = 16;

const BYTES_MIN = 16;
const BYTES_MAX = 255;
export const BYTES_HINT = `${BYTES_MIN} to ${BYTES_MAX} random bytes. Default: ${USUAL_BYTES}.`;

const PREFIX = /^[a-zA-Z0-9_]{1,8}$/;
export const PREFIX_HINT = "1 to 8 letters, digits and underscores. Empty for none.";

export interface SettingsDraft {
  readonly prefix: string;
  readonly bytes: string;
  /** One address or CIDR block per line. */
  readonly addresses: string;
  readonly deleteProtection: boolean;
  readonly keyEncryption: boolean;
}

type Api = Row<"admin.listApis">;

export const draftOf = (api: Api): SettingsDraft => ({
  prefix: api.defaultPrefix ?? "",
  bytes: api.defaultByteLength === undefined ? "" : String(api.defaultByteLength),
  addresses: (api.ipAllowList ?? []).join("\n"),
  deleteProtection: api.deleteProtection,
  keyEncryption: api.keyEncryption,
});

/** Returns the problems with the entered text. Only the server checks the addresses. */
export function problemsOf({ prefix, bytes }: SettingsDraft): { readonly prefix?: string; readonly bytes?: string } {
  const count = parseCount(bytes);
  const isLength = bytes.trim() === "" || (count !== undefined && count >= BYTES_MIN && count <= BYTES_MAX);
  return {
    ...(prefix.trim() === "" || PREFIX.test(prefix.trim()) ? {} : { prefix: PREFIX_HINT }),
    ...(isLength ? {} : { bytes: BYTES_HINT }),
  };
}

type Change = Omit<Input<"apis.updateApi">, "apiId" | "name">;

/** Returns the settings that differ from those of the API. */
export function changesOf(api: Api, draft: SettingsDraft): Change {
  const now = {
    defaultPrefix: api.defaultPrefix ?? null,
    defaultByteLength: api.defaultByteLength ?? null,
    ipAllowList: api.ipAllowList ?? [],
    deleteProtection: api.deleteProtection,
    keyEncryption: api.keyEncryption,
  };
  const next: typeof now = {
    defaultPrefix: draft.prefix.trim() === "" ? null : draft.prefix.trim(),
    defaultByteLength: parseCount(draft.bytes) ?? null,
    ipAllowList: draft.addresses.split(/[\s,]+/).filter((address) => address !== ""),
    deleteProtection: draft.deleteProtection,
    keyEncryption: draft.keyEncryption,
  };
  const names = Object.keys(now) as (keyof typeof now)[];
  const changed = names.filter((name) => JSON.stringify(now[name]) !== JSON.stringify(next[name]));
  return Object.fromEntries(changed.map((name) => [name, next[name]]));
}
