import * as z from "zod";
import type { ImportedKey } from "../../core/keys/import-keys.ts";
import { listOf, readObject, Text, Texts, WrongImport } from "./documents.ts";
import type { Finds } from "./finds.ts";
import {
  fullName,
  type KubeObject,
  kubeObjectsOf,
  nameOf,
  type Secret,
  secretsByName,
  secretText,
} from "./kubernetes.ts";

/*
 * Kong Gateway: the declarative file that `deck gateway dump` writes, with credentials below their consumers or beside them, and the KongConsumers and
 * Secrets of its ingress controller. The groups of a consumer (acls, consumer groups) become roles.
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

export function findKongKeys(documents: readonly unknown[], finds: Finds): void {
  const objects = kubeObjectsOf(documents);
  if (objects.length > 0) {
    findInCluster(objects, finds);
    return;
  }
  for (const document of documents) findInFile(readObject(Declarative, document, "Kong's declarative file"), finds);
}

function findInFile(file: z.output<typeof Declarative>, finds: Finds): void {
  for (const consumer of file.consumers) {
    const isOwner = ({ consumer: owner }: { readonly consumer?: z.output<typeof Owner> }): boolean => {
      const [name, id] = typeof owner === "object" ? [owner.username, owner.id] : [owner, owner];
      return (name !== undefined && name === consumer.username) || (id !== undefined && id === consumer.id);
    };
    const groups = [...consumer.acls, ...file.acls.filter(isOwner)].map(({ group }) => group);
    const credentials = [...consumer.keyauth_credentials, ...file.keyauth_credentials.filter(isOwner)];
    credentials.forEach((credential, i) => {
      const from = `${consumerName(consumer)}, key ${i + 1}`;
      finds.add(from, credential.key, { ...keyOf(consumer, groups), ...expiry(credential) });
    });
    for (const [field, name] of Object.entries(OTHER_CREDENTIALS)) {
      const others = consumer[field];
      if (Array.isArray(others) && others.length > 0) {
        finds.leave(`${consumerName(consumer)}, ${name}`, "a credential of this kind is no API key");
      }
    }
    for (const { name = "without a name" } of consumer.plugins) {
      finds.notePlugin(name, { isLimit: name === "rate-limiting" || name === "rate-limiting-advanced" });
    }
  }
}

/** The ingress controller: a KongConsumer names its Secrets, and each Secret says of what kind it is. */
function findInCluster(objects: readonly KubeObject[], finds: Finds): void {
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
      if (secret === undefined) finds.leave(from, "the Secret is not in the file");
      else if (kind === "key-auth")
        finds.add(from, secretText(secret, "key"), keyOf(consumer, [...groups, ...consumerGroups]));
      else if (kind !== "acl") finds.leave(from, `a credential of the kind ${kind ?? "unknown"} is no API key`);
    }
  }
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

/** A ttl is in seconds from when the credential was made, which Kong has in seconds, too. */
function expiry({ ttl, created_at: createdAt }: z.output<typeof Credential>): { expires?: number } {
  if (ttl === undefined || Number(ttl) === 0) return {};
  const expires = (Number(createdAt) + Number(ttl)) * 1000;
  if (!Number.isSafeInteger(expires)) {
    throw new WrongImport(
      "a key with a ttl needs created_at, so that it is known when it ends: `deck gateway dump` writes both",
    );
  }
  return { expires };
}
