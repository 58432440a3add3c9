import { makeId } from "../../../core/ids.ts";
import { hashKey, makeKeyString } from "../../../core/keys/key-string.ts";
import type { ApiRow } from "../../db/apis.ts";
import type { ChangeDeps } from "../deps.ts";

const BYTE_LENGTH_DEFAULT = 16;

export interface DrawnKey {
  readonly keyId: string;
  /** The key string. */
  readonly key: string;
  readonly hash: string;
  readonly start: string;
}

/** Returns a new id and key string. Defaults of omitted members come from the API. */
export function drawKey(
  { randomBytes }: Pick<ChangeDeps, "randomBytes">,
  api: Pick<ApiRow, "default_prefix" | "default_byte_length">,
  { prefix, byteLength }: { readonly prefix?: string | undefined; readonly byteLength?: number | undefined },
): DrawnKey {
  const keyId = makeId("key", randomBytes(16));
  const { key, start } = makeKeyString({
    prefix: prefix ?? api.default_prefix ?? undefined,
    randomBytes: randomBytes(byteLength ?? api.default_byte_length ?? BYTE_LENGTH_DEFAULT),
  });
  return { keyId, key, hash: hashKey(key), start };
}
