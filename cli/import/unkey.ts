import * as z from "zod";
import type { ImportedKey } from "../../core/keys/import-keys.ts";
import { KEY_HASH } from "../../core/keys/key-hash.ts";
import type { DiscoveredKeys } from "./discovered-keys.ts";
import { listOf, readObject } from "./documents.ts";

/*
 * Imports keys from Unkey: responses of `apis.listKeys` (v2 or v1, with `decrypt`), as one page or as the objects of many pages. A key that
 * is not recoverable has no plaintext; for such a key the import accepts a `hash`, the SHA-256 in base64 from Unkey's database.
 */

const Refill = z.looseObject({
  interval: z.enum(["daily", "monthly"]),
  amount: z.int(),
  refillDay: z.int().nullish(),
});
const Limit = z.looseObject({
  name: z.string(),
  limit: z.int(),
  duration: z.int(),
  autoApply: z.boolean().default(false),
});

const Key = z.looseObject({
  keyId: z.string().optional(),
  id: z.string().optional(),
  plaintext: z.string().nullish(),
  hash: z.string().nullish(),
  name: z.string().nullish(),
  externalId: z.string().nullish(),
  ownerId: z.string().nullish(),
  identity: z.looseObject({ externalId: z.string() }).nullish(),
  meta: z.record(z.string(), z.unknown()).nullish(),
  enabled: z.boolean().nullish(),
  expires: z.int().nullish(),
  credits: z.looseObject({ remaining: z.int().nullish(), refill: Refill.nullish() }).nullish(),
  remaining: z.int().nullish(),
  refill: Refill.nullish(),
  roles: listOf(z.string()),
  permissions: listOf(z.string()),
  ratelimits: listOf(Limit),
  ratelimit: z.looseObject({}).nullish(),
});
type Key = z.output<typeof Key>;

/** Schema of a page of v2 or v1. */
const Page = z.union([z.looseObject({ data: z.array(z.unknown()) }), z.looseObject({ keys: z.array(z.unknown()) })]);

export function findUnkeyKeys(documents: readonly unknown[], discovered: DiscoveredKeys): void {
  const objects = documents.flatMap((document): unknown[] => {
    const page = Page.safeParse(document);
    if (!page.success) return [document];
    return "data" in page.data ? (page.data.data as unknown[]) : (page.data.keys as unknown[]);
  });
  objects.forEach((object, i) => {
    const key = readObject(Key, object, `key ${i + 1}`);
    const id = key.keyId ?? key.id;
    const from = id === undefined ? `key ${i + 1}` : `key ${id}`;
    const { plaintext, hash } = key;
    if (key.ratelimit != null)
      discovered.note("the single `ratelimit` of v1 keys is not imported: name it in `ratelimits`");
    if (plaintext != null && plaintext !== "") discovered.add(from, plaintext, keyOf(key));
    else if (hash != null && KEY_HASH.test(hash)) discovered.addHash(from, hash, keyOf(key));
    else if (hash != null) discovered.leave(from, "its hash is not a SHA-256 in base64 (44 characters)");
    else {
      discovered.leave(from, "it has neither `plaintext` nor `hash`: list keys with decrypt, or add the hash");
    }
  });
}

function keyOf(key: Key): Omit<ImportedKey, "hash"> {
  const owner = key.identity?.externalId ?? key.externalId ?? key.ownerId;
  const remaining = key.credits?.remaining ?? key.remaining;
  const refill = key.credits?.refill ?? key.refill;
  return {
    enabled: key.enabled ?? true,
    ...(key.name == null ? {} : { name: key.name }),
    ...(owner == null ? {} : { externalId: owner }),
    ...(key.meta == null ? {} : { meta: key.meta }),
    ...(key.expires == null ? {} : { expires: key.expires }),
    ...(remaining == null ? {} : { credits: { remaining, ...(refill == null ? {} : { refill: refillOf(refill) }) } }),
    ...(key.roles.length === 0 ? {} : { roles: key.roles }),
    ...(key.permissions.length === 0 ? {} : { permissions: key.permissions }),
    ...(key.ratelimits.length === 0
      ? {}
      : {
          ratelimits: key.ratelimits.map(({ name, limit, duration, autoApply }) => ({
            name,
            limit,
            duration,
            autoApply,
          })),
        }),
  };
}

const refillOf = ({ interval, amount, refillDay }: z.output<typeof Refill>) => ({
  interval,
  amount,
  ...(refillDay == null ? {} : { refillDay }),
});
