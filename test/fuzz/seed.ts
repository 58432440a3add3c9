import { randomBytes } from "node:crypto";
import { insertMigration } from "../../api-server/db/migrations-of-keys.ts";
import { findWorkspace } from "../../api-server/db/workspaces.ts";
import { policyBody } from "../../api-server/test/resources.ts";
import { makeId } from "../../core/ids.ts";
import { createPool } from "../../postgres/pool.ts";

/*
 * Objects for the fuzzer to find. Random ids exist nowhere, so the code after the lookup would never be reached.
 */

type Call = <Data>(procedure: string, body: unknown) => Promise<Data>;

/** Existing ids and names, by their place in a body as Schemathesis writes it. */
export type Seeded = Readonly<Record<string, readonly string[]>>;

const EACH = 8;

/** The identifier for which every namespace has an override. */
const IDENTIFIER = "vip";

export async function seed(call: Call, databaseUrl: string): Promise<Seeded> {
  const found: Record<string, string[]> = {};
  const add = (place: string, ...values: string[]) => {
    found[place] = [...(found[place] ?? []), ...values];
  };
  add("identifier", IDENTIFIER);
  for (let i = 0; i < EACH; i++) await seedOne(call, `s${i}`, add);
  add("migrationId", ...(await prepare(databaseUrl)));
  return found;
}

async function seedOne(call: Call, own: string, add: (place: string, ...values: string[]) => void): Promise<void> {
  const { apiId } = await call<{ apiId: string }>("apis.createApi", { name: `api-${own}` });
  const slug = `doc.${own}`;
  const permission = { name: own, slug };
  const { permissionId } = await call<{ permissionId: string }>("permissions.createPermission", permission);
  const role = { name: `role-${own}`, permissions: [slug] };
  const { roleId } = await call<{ roleId: string }>("permissions.createRole", role);
  const ratelimits = [{ name: "requests", limit: 1_000_000, duration: 3_600_000, autoApply: true }];
  const externalId = `user_${own}`;
  const { identityId } = await call<{ identityId: string }>("identities.createIdentity", { externalId, ratelimits });
  const credits = { remaining: 1_000_000, refill: { interval: "daily", amount: 1 } };
  const body = { apiId, name: own, externalId, roles: [role.name], credits, ratelimits };
  const { keyId, key } = await call<{ keyId: string; key: string }>("keys.createKey", body);
  const { namespaceId } = await call<{ namespaceId: string }>("ratelimit.createNamespace", { name: `ns-${own}` });
  const override = { namespace: namespaceId, identifier: IDENTIFIER, limit: 5, duration: 60_000 };
  const { overrideId } = await call<{ overrideId: string }>("ratelimit.setOverride", override);
  const { policyId } = (await call<{ ids: { policyId: string } }>("managed.applyObject", policyBody(apiId, own))).ids;

  add("apiId", apiId);
  add("keyId", keyId);
  add("key", key);
  add("identity", identityId, externalId);
  add("externalId", externalId);
  add("permission", permissionId, slug);
  add("permissions[*]", permissionId, slug);
  add("role", roleId, role.name);
  add("roles[*]", role.name);
  add("namespace", namespaceId, `ns-${own}`);
  add("policyId", policyId);
  // The names that v1 has for them.
  add("permissionId", permissionId);
  add("roleId", roleId);
  add("identityId", identityId);
  add("namespaceId", namespaceId);
  add("namespaceName", `ns-${own}`);
  add("ownerId", externalId);
  add("id", apiId, keyId, permissionId, roleId, namespaceId, overrideId, policyId);
}

/** Makes what no procedure can: migrations, whose ids it returns, and APIs whose keys may be recoverable. */
async function prepare(databaseUrl: string): Promise<string[]> {
  const db = createPool(databaseUrl, { connectionsMax: 1 });
  try {
    const workspace = await findWorkspace(db, { workspace: "default" });
    if (workspace === undefined) throw new Error("the workspace default is not there");
    await db.query("update apis set key_encryption = true");
    const ids: string[] = [];
    for (const algorithm of ["sha256", "prefixed"] as const) {
      const id = makeId("migration", randomBytes(16));
      await insertMigration(db, { workspaceId: workspace.id, id, name: algorithm, algorithm, createdAt: Date.now() });
      ids.push(id);
    }
    return ids;
  } finally {
    await db.end();
  }
}

/** How often a field gets a value that exists. */
const PROBABILITY = 0.7;

const bindIn = (where: "body" | "query", place: string, dictionary: string): string =>
  `"${where}.${place}" = { dictionary = ${JSON.stringify(dictionary)}, probability = ${PROBABILITY} }`;

const bind = (place: string, dictionary: string): string => bindIn("body", place, dictionary);

/** The seeded values as a part of Schemathesis' configuration (TOML); JSON texts and lists are TOML too. */
export function toDictionaries(seeded: Seeded): string {
  return [
    ...Object.entries(seeded).map(
      ([name, values]) => `[dictionaries.${JSON.stringify(name)}]\nvalues = ${JSON.stringify(values)}`,
    ),
    "[parameters]",
    ...Object.keys(seeded).map((place) => bind(place, place)),
    // The reads of v1. A query has no places within places.
    ...Object.keys(seeded)
      .filter((place) => /^\w+$/.test(place))
      .map((place) => bindIn("query", place, place)),
    "",
  ].join("\n");
}
