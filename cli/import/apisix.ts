import * as z from "zod";
import type { ImportedKey } from "../../core/keys/import-keys.ts";
import { findApisixRules } from "./apisix-rules.ts";
import type { DiscoveredKeys } from "./discovered-keys.ts";
import { listOf, readObject, Text } from "./documents.ts";
import { fullName, type KubeObject, kubeObjectsOf, nameOf, secretsByName, secretText } from "./kubernetes.ts";
import { omitRule, omitRulesOf } from "./policy-rules.ts";

/*
 * Imports keys from Apache APISIX: from the consumers in `apisix.yaml`, in an ADC file or in Admin API responses (with credentials), or
 * from the objects of its ingress controller (ApisixConsumer, or Consumer of the Gateway API). The group of a consumer becomes a role.
 */

const KeyAuth = z.looseObject({ key: Text });
const Plugins = z
  .looseObject({ "key-auth": KeyAuth.optional() })
  .nullish()
  .transform((plugins) => plugins ?? {});

const Consumer = z.looseObject({
  username: Text,
  group_id: Text,
  labels: z.record(z.string(), z.unknown()).nullish(),
  plugins: Plugins,
  credentials: listOf(z.looseObject({ name: Text, type: Text, config: KeyAuth.optional() })),
});
type Consumer = z.output<typeof Consumer>;

/** A credential. The Admin API stores it separately from its consumer. */
const Credential = z.looseObject({ id: Text, plugins: Plugins });
const Kept = z.looseObject({ key: z.string(), value: z.unknown() });
const ApiResponse = z.looseObject({ list: z.array(Kept) });
const Standalone = z.looseObject({ consumers: listOf(Consumer) });

const HasPlugins = z.looseObject({ plugins: z.looseObject({}) });

/** Kinds of objects of the ingress controller that can have limits or denials. */
const WITH_PLUGINS = ["ApisixRoute", "ApisixPluginConfig", "ApisixGlobalRule", "PluginConfig"];
const FROM_FILE = "import apisix.yaml or an ADC file for drafts of rules";

const CREDENTIAL_PATH = /\/consumers\/([^/]+)\/credentials\/([^/]+)$/;

export function findApisixKeys(documents: readonly unknown[], discovered: DiscoveredKeys): void {
  const objects = kubeObjectsOf(documents);
  if (objects.length > 0) {
    findInCluster(objects, discovered);
    return;
  }
  const kept = documents.flatMap((document) => {
    const response = ApiResponse.safeParse(document);
    if (response.success) return response.data.list;
    const one = Kept.safeParse(document);
    return one.success ? [one.data] : [];
  });
  if (kept.length > 0) {
    findInAnswers(kept, discovered);
    return;
  }
  for (const document of documents) {
    for (const consumer of readObject(Standalone, document, "APISIX' file").consumers) findOf(consumer, discovered);
    findApisixRules(document, discovered);
  }
}

/**
 * Reads responses of the Admin API, which stores consumers at `/consumers/NAME` and their credentials at `/consumers/NAME/credentials/ID`.
 */
function findInAnswers(kept: readonly z.output<typeof Kept>[], discovered: DiscoveredKeys): void {
  const consumers = new Map<string, Consumer>();
  for (const { key, value } of kept) {
    if (CREDENTIAL_PATH.test(key)) continue;
    if (!key.includes("/consumers/")) {
      if (HasPlugins.safeParse(value).success) omitRule(discovered, key, FROM_FILE);
      continue;
    }
    const consumer = readObject(Consumer, value, key);
    consumers.set(consumer.username ?? "", consumer);
    findOf(consumer, discovered);
  }
  for (const { key, value } of kept) {
    const [, username, id] = CREDENTIAL_PATH.exec(key) ?? [];
    if (username === undefined || id === undefined) continue;
    const owner = consumers.get(username) ?? readObject(Consumer, { username }, key);
    const { plugins } = readObject(Credential, value, key);
    const from = `consumer ${username}, credential ${id}`;
    if (plugins["key-auth"] === undefined) discovered.leave(from, "a credential of this kind is not an API key");
    else discovered.add(from, plugins["key-auth"].key, keyOf(owner));
  }
}

function findOf(consumer: Consumer, discovered: DiscoveredKeys): void {
  const from = `consumer ${consumer.username ?? "without a name"}`;
  const { "key-auth": keyAuth, ...others } = consumer.plugins as Record<string, unknown> & z.output<typeof Plugins>;
  if (keyAuth !== undefined) discovered.add(from, keyAuth.key, keyOf(consumer));
  for (const name of Object.keys(others)) {
    if (name.endsWith("-auth")) discovered.leave(`${from}, ${name}`, "a credential of this kind is not an API key");
    else discovered.notePlugin(name, { isLimit: name.startsWith("limit-") });
  }
  for (const { name, type, config } of consumer.credentials) {
    const at = `${from}, credential ${name ?? "without a name"}`;
    if (type === "key-auth") discovered.add(at, config?.key, keyOf(consumer));
    else discovered.leave(at, `a credential of the kind ${type ?? "unknown"} is not an API key`);
  }
}

const Reference = z.looseObject({ name: Text }).optional();
const ApisixConsumer = z.looseObject({
  spec: z.looseObject({
    authParameter: z.looseObject({
      keyAuth: z.looseObject({ value: KeyAuth.optional(), secretRef: Reference }).optional(),
    }),
  }),
});
const GatewayConsumer = z.looseObject({
  spec: z.looseObject({
    credentials: listOf(z.looseObject({ name: Text, type: Text, config: KeyAuth.optional(), secretRef: Reference })),
  }),
});

function findInCluster(objects: readonly KubeObject[], discovered: DiscoveredKeys): void {
  const secrets = secretsByName(objects);
  const add = (object: KubeObject, from: string, direct: string | undefined, secretName: string | undefined): void => {
    const { name: username, namespace } = object.metadata;
    const secret = secretName === undefined ? undefined : secrets.get(fullName(namespace, secretName));
    if (secretName !== undefined && secret === undefined)
      discovered.leave(from, `the file does not contain the Secret ${secretName}`);
    else
      discovered.add(from, secret === undefined ? direct : secretText(secret, "key"), {
        enabled: true,
        name: username,
        externalId: username,
      });
  };
  for (const object of objects) {
    const what = `${object.kind} ${nameOf(object)}`;
    if (object.kind === "ApisixConsumer") {
      const { keyAuth } = readObject(ApisixConsumer, object, what).spec.authParameter;
      if (keyAuth === undefined) discovered.leave(what, "it has no key-auth key");
      else add(object, what, keyAuth.value?.key, keyAuth.secretRef?.name);
    } else if (object.kind === "Consumer") {
      for (const { name, type, config, secretRef } of readObject(GatewayConsumer, object, what).spec.credentials) {
        const from = `${what}, credential ${name ?? "without a name"}`;
        if (type === "key-auth") add(object, from, config?.key, secretRef?.name);
        else discovered.leave(from, `a credential of the kind ${type ?? "unknown"} is not an API key`);
      }
    }
  }
  omitRulesOf(WITH_PLUGINS, objects, discovered, FROM_FILE);
}

function keyOf({ username, group_id: group, labels }: Consumer): Omit<ImportedKey, "hash"> {
  return {
    enabled: true,
    ...(username === undefined ? {} : { name: username, externalId: username }),
    ...(group === undefined ? {} : { roles: [group] }),
    ...(labels === undefined || labels === null ? {} : { meta: { labels } }),
  };
}
