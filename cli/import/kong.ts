import * as z from "zod";
import type { ImportedKey } from "../../core/keys/import-keys.ts";
import type { DiscoveredKeys } from "./discovered-keys.ts";
import { listOf, readObject, Text, Texts } from "./documents.ts";
import { findKongRules } from "./kong-rules.ts";
import {
  fullName,
  type KubeObject,
  kubeObjectsOf,
  nameOf,
  type Secret,
  secretsByName,
  secretText,
} from "./kubernetes.ts";
import { omitRulesOf } from "./policy-rules.ts";

/*
 * Imports keys from Kong Gateway: from the declarative file that `deck gateway dump` writes, or from the KongConsumers and Secrets of its
 * ingress controller. The file may list credentials inside their consumers or in separate lists. The groups of a consumer (ACL groups and
 * consumer groups) become roles.
 */

const Credential = z.looseObject({ key: Text, ttl: Text, created_at: Text });
const Group = z.looseObject({ group: Text });
const Named = z.looseObject({ name: Text });
const Owner = z.union([Text, z.looseObject({ username: Text, id: Text })]);

const OTHER_CREDENTIALS = {
  basicauth_credentials: "basic-auth",
  hmacauth_credentials: "hmac-auth",
  jwt_secrets: "JWT",
  oauth2_credentials: "OAuth 2.0",
  mtls_auth_credentials: "mTLS",
  keyauth_enc_credentials: "key-auth-enc",
} as const;

const Consumer = z.looseObject({
  id: Text,
  username: Text,
  custom_id: Text,
  tags: Texts,
  keyauth_credentials: listOf(Credential),
  acls: listOf(Group),
  groups: listOf(Named),
  plugins: listOf(Named),
});
type Consumer = z.output<typeof Consumer>;

const Declarative = z.looseObject({
  consumers: listOf(Consumer),
  keyauth_credentials: listOf(Credential.extend({ consumer: Owner })),
  acls: listOf(Group.extend({ consumer: Owner })),
});

/**
 * Meaning of a credential's `ttl`. `remaining`: the remaining seconds, as Kong returns the `ttl` from Postgres and writes it into a dump.
 * `total`: the seconds since `created_at`, as set at creation. The file does not say which meaning applies.
 */
export type TtlMeaning = "remaining" | "total";

/** Returns the expiry in Unix ms, `undefined` if the credential never expires, or the reason why the expiry is unknown. */
type ReadExpiry = (credential: {
  ttl?: string | undefined;
  created_at?: string | undefined;
}) => { readonly expires?: number } | { readonly why: string };

/**
 * Adds the keys in the documents to `discovered`. If `ttlIs` is `undefined`, keys with a `ttl` are skipped, because their expiry is
 * unknown.
 */
export function findKongKeys(
  documents: readonly unknown[],
  discovered: DiscoveredKeys,
  { ttlIs, nowMs }: { readonly ttlIs: TtlMeaning | undefined; readonly nowMs: number },
): void {
  const readExpiry: ReadExpiry = ({ ttl, created_at: createdAt }) => {
    if (ttl === undefined || Number(ttl) === 0) return {};
    if (ttlIs === undefined) {
      return {
        why: `its ttl of ${ttl} s may be the remaining or the total lifetime: set --ttl-is remaining|total`,
      };
    }
    const fromMs = ttlIs === "remaining" ? nowMs : createdAt === undefined ? Number.NaN : Number(createdAt) * 1000;
    const expires = fromMs + Number(ttl) * 1000;
    if (Number(ttl) > 0 && Number.isSafeInteger(expires)) return { expires };
    return Number.isNaN(fromMs)
      ? { why: `its ttl of ${ttl} s counts from created_at (Unix seconds), which the file does not contain` }
      : { why: `its ttl "${ttl}" is not a number of seconds` };
  };
  const objects = kubeObjectsOf(documents);
  if (objects.length > 0) {
    findInCluster(objects, discovered, readExpiry);
    return;
  }
  for (const document of documents) {
    findInFile(readObject(Declarative, document, "Kong's declarative file"), discovered, readExpiry);
    findKongRules(document, discovered);
  }
}

function findInFile(file: z.output<typeof Declarative>, discovered: DiscoveredKeys, readExpiry: ReadExpiry): void {
  for (const consumer of file.consumers) {
    const isOwner = ({ consumer: owner }: { readonly consumer?: z.output<typeof Owner> }): boolean => {
      const [name, id] = typeof owner === "object" ? [owner.username, owner.id] : [owner, owner];
      return (name !== undefined && name === consumer.username) || (id !== undefined && id === consumer.id);
    };
    const groups = [...consumer.acls, ...file.acls.filter(isOwner)].map(({ group }) => group);
    const credentials = [...consumer.keyauth_credentials, ...file.keyauth_credentials.filter(isOwner)];
    credentials.forEach((credential, i) => {
      const from = `${consumerName(consumer)}, key ${i + 1}`;
      const expiry = readExpiry(credential);
      if ("why" in expiry) discovered.leave(from, expiry.why);
      else discovered.add(from, credential.key, { ...keyOf(consumer, groups), ...expiry });
    });
    for (const [field, name] of Object.entries(OTHER_CREDENTIALS)) {
      const others = consumer[field];
      if (Array.isArray(others) && others.length > 0) {
        discovered.leave(`${consumerName(consumer)}, ${name}`, "a credential of this kind is not an API key");
      }
    }
    for (const { name = "without a name" } of consumer.plugins) {
      discovered.notePlugin(name, { isLimit: name === "rate-limiting" || name === "rate-limiting-advanced" });
    }
  }
}

/** Reads objects of the ingress controller: a KongConsumer references its Secrets, and each Secret declares its credential type. */
function findInCluster(objects: readonly KubeObject[], discovered: DiscoveredKeys, readExpiry: ReadExpiry): void {
  const secrets = secretsByName(objects);
  for (const object of objects.filter(({ kind }) => kind === "KongConsumer")) {
    const consumer = readObject(Consumer, object, `KongConsumer ${nameOf(object)}`);
    const { credentials, consumerGroups } = readObject(
      z.looseObject({ credentials: Texts, consumerGroups: Texts }),
      object,
      `KongConsumer ${nameOf(object)}`,
    );
    const { namespace } = object.metadata;
    const named = credentials.map((name) => ({ name, secret: secrets.get(fullName(namespace, name)) }));
    const groups = named.map(({ secret }) =>
      secret !== undefined && credentialKind(secret) === "acl" ? secretText(secret, "group") : undefined,
    );
    for (const { name, secret } of named) {
      const from = `${consumerName(consumer)}, Secret ${name}`;
      const kind = secret === undefined ? undefined : credentialKind(secret);
      if (secret === undefined) discovered.leave(from, "the file does not contain the Secret");
      else if (kind === "key-auth") {
        const expiry = readExpiry({ ttl: secretText(secret, "ttl"), created_at: secretText(secret, "created_at") });
        const key = keyOf(consumer, [...groups, ...consumerGroups]);
        if ("why" in expiry) discovered.leave(from, expiry.why);
        else discovered.add(from, secretText(secret, "key"), { ...key, ...expiry });
      } else if (kind !== "acl")
        discovered.leave(from, `a credential of the kind ${kind ?? "unknown"} is not an API key`);
    }
  }
  const kinds = ["KongPlugin", "KongClusterPlugin"];
  omitRulesOf(kinds, objects, discovered, "import the file of `deck gateway dump` for drafts of rules");
}

const credentialKind = (secret: Secret): string | undefined =>
  secret.metadata.labels["konghq.com/credential"] ?? secretText(secret, "kongCredType");

const consumerName = ({ username, custom_id, id }: Consumer): string =>
  `consumer ${username ?? custom_id ?? id ?? "without a name"}`;

function keyOf(consumer: Consumer, groups: readonly (string | undefined)[]): Omit<ImportedKey, "hash"> {
  const { username, custom_id: customId, tags } = consumer;
  const owner = customId ?? username ?? consumer.id;
  const roles = [...groups, ...consumer.groups.map(({ name }) => name)].filter((group) => group !== undefined);
  return {
    enabled: true,
    ...(username === undefined ? {} : { name: username }),
    ...(owner === undefined ? {} : { externalId: owner }),
    ...(roles.length === 0 ? {} : { roles: [...new Set(roles)] }),
    ...(tags.length === 0 ? {} : { meta: { tags } }),
  };
}
