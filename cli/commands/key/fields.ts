import type { Data, Schema } from "../../../core/api/procedures.ts";
import { type Field, type Fields, instantField } from "../../fields.ts";
import { ratelimitText } from "../new-ratelimit.ts";

export const id = {
  type: "string",
  placeholder: "ID",
  help: "key id (key_…), not its secret",
  required: true,
} as const;

type Key = Schema<"Key">;

const REFILL: Field<Key> = { name: "refill", value: (row) => row.credits?.refill ?? null };

/** Fields of a key without its secret. */
export const keyFields: Fields<Key> = [
  { name: "keyId", title: "id", value: (row) => row.keyId },
  { name: "name", title: "name", value: (row) => row.name ?? null, shrinks: true },
  { name: "enabled", title: "state", value: (row) => row.enabled, text: stateText },
  { name: "externalId", title: "owner", value: (row) => row.identity?.externalId ?? null, shrinks: true },
  { name: "identityId", value: (row) => row.identity?.id ?? null },
  instantField({ name: "expires", title: "expires" }, (row) => row.expires ?? null, "never"),
  { name: "start", title: "start", value: (row) => row.start, text: (row) => `${row.start}…`, drops: true },
  { name: "credits", title: "credits", value: (row) => row.credits?.remaining ?? null, drops: true },
  instantField({ name: "lastUsedAt", title: "last used", drops: true }, (row) => row.lastUsedAt ?? null),
  instantField({ name: "createdAt", title: "created", drops: true }, (row) => row.createdAt),
  { name: "updatedAt", value: (row) => row.updatedAt ?? null },
  REFILL,
  { name: "roles", value: (row) => row.roles ?? [] },
  { name: "permissions", value: (row) => row.permissions ?? [] },
  { name: "ratelimits", value: (row) => row.ratelimits ?? [] },
  { name: "meta", value: (row) => row.meta ?? null },
];

interface Rights {
  readonly roles?: readonly string[] | undefined;
  readonly permissions?: readonly string[] | undefined;
}

const rightsFields: Fields<Rights> = [
  { name: "roles", title: "roles", value: (row) => row.roles ?? [], text: (row) => listText(row.roles) },
  {
    name: "permissions",
    title: "permissions",
    value: (row) => row.permissions ?? [],
    text: (row) => listText(row.permissions),
  },
];

/** Fields of a key's details, including fields that do not fit into a list. */
export const keyDetailFields: Fields<Key> = [
  ...keyFields
    .filter(({ name }) => !["roles", "permissions", "ratelimits", "meta"].includes(name))
    .map((field) => (field === REFILL ? { ...REFILL, title: "refill", text: refillText } : field)),
  ...rightsFields,
  {
    name: "ratelimits",
    title: "limits",
    value: (row) => row.ratelimits ?? [],
    text: (row) => listText(row.ratelimits?.map(ratelimitText)),
  },
  {
    name: "identityRatelimits",
    title: "limits of owner",
    value: (row) => row.identity?.ratelimits ?? [],
    text: (row) => listText(row.identity?.ratelimits?.map(ratelimitText)),
  },
  { name: "meta", title: "meta", value: (row) => row.meta ?? null, text: (row) => metaText(row.meta) },
];

/** Fields of a key with its secret, for `--decrypt`. */
export const decryptedKeyFields: Fields<Key> = [
  ...keyDetailFields,
  {
    name: "plaintext",
    title: "key",
    value: (row) => row.plaintext ?? null,
    text: (row) => row.plaintext ?? "not recoverable",
  },
];

export interface MadeKey {
  readonly keyId: string;
  readonly key: string;
}

export const madeKeyFields: Fields<MadeKey> = [
  { name: "keyId", value: (row) => row.keyId },
  { name: "key", value: (row) => row.key },
];

/** The only field that the API returns for a changed or deleted key. */
export const keyIdFields: Fields<{ readonly keyId: string }> = [{ name: "keyId", value: (row) => row.keyId }];

type Verified = Data<"keys.verifyKey">;

export const verifiedFields: Fields<Verified> = [
  { name: "code", title: "code", value: (row) => row.code },
  { name: "valid", value: (row) => row.valid },
  { name: "keyId", title: "id", value: (row) => row.keyId ?? null },
  { name: "name", title: "name", value: (row) => row.name ?? null },
  { name: "enabled", value: (row) => row.enabled ?? null },
  { name: "externalId", title: "owner", value: (row) => row.identity?.externalId ?? null },
  instantField({ name: "expires", title: "expires" }, (row) => row.expires ?? null, "never"),
  { name: "credits", title: "credits", value: (row) => row.credits ?? null },
  ...rightsFields,
  {
    name: "ratelimits",
    title: "limits",
    value: (row) => row.ratelimits ?? [],
    text: (row) =>
      listText(
        row.ratelimits?.map(
          (one) => `${one.name}: ${one.remaining} of ${one.limit} left${one.exceeded ? ", exceeded" : ""}`,
        ),
      ),
  },
  { name: "meta", value: (row) => row.meta ?? null },
];

const listText = (items: readonly string[] = []): string => items.join(", ") || "none";

const metaText = (meta: Record<string, unknown> | undefined): string =>
  meta === undefined ? "-" : JSON.stringify(meta);

/** Returns the refill in the format of `key create --refill`, such as `daily:100`. */
function refillText({ credits }: Key): string {
  const { refill } = credits ?? {};
  if (refill == null) return "none";
  const { interval, amount, refillDay } = refill;
  return [interval, amount, ...(refillDay == null ? [] : [refillDay])].join(":");
}

function stateText({ enabled, expires }: Key): string {
  if (!enabled) return "disabled";
  return expires !== undefined && Date.now() > expires ? "expired" : "enabled";
}
