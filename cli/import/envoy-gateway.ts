import * as z from "zod";
import type { DiscoveredKeys } from "./discovered-keys.ts";
import { listOf, readObject, Text } from "./documents.ts";
import { findEnvoyGatewayRules } from "./envoy-gateway-rules.ts";
import { fieldsOf, fullName, type KubeObject, kubeObjectsOf, nameOf, secretsByName, secretText } from "./kubernetes.ts";

/*
 * Imports keys from the API key authentication of Envoy Gateway: each value of a Secret is a key, and the value's name is the client id. If
 * the file contains SecurityPolicies, only the Secrets that they reference are read; otherwise all Secrets are.
 */

const SecurityPolicy = z.looseObject({
  spec: z.looseObject({
    apiKeyAuth: z.looseObject({ credentialRefs: listOf(z.looseObject({ name: Text, namespace: Text })) }).optional(),
  }),
});

export function findEnvoyGatewayKeys(documents: readonly unknown[], discovered: DiscoveredKeys): void {
  const objects = kubeObjectsOf(documents);
  const secrets = secretsByName(objects);
  const policies = objects.filter(({ kind }) => kind === "SecurityPolicy");
  for (const name of policies.length === 0 ? secrets.keys() : namedBy(policies)) {
    const secret = secrets.get(name);
    if (secret === undefined) {
      discovered.leave(`Secret ${name}`, "the file does not contain this Secret of a SecurityPolicy");
      continue;
    }
    for (const client of fieldsOf(secret)) {
      discovered.add(`Secret ${name}, client ${client}`, secretText(secret, client), {
        enabled: true,
        name: client,
        externalId: client,
      });
    }
  }
  findEnvoyGatewayRules(objects, discovered);
}

/** Returns the distinct Secrets that the policies reference. A reference without a namespace means the policy's own. */
function namedBy(policies: readonly KubeObject[]): Set<string> {
  const names = new Set<string>();
  for (const policy of policies) {
    const { apiKeyAuth } = readObject(SecurityPolicy, policy, `SecurityPolicy ${nameOf(policy)}`).spec;
    for (const { name, namespace = policy.metadata.namespace } of apiKeyAuth?.credentialRefs ?? []) {
      if (name !== undefined) names.add(fullName(namespace, name));
    }
  }
  return names;
}
