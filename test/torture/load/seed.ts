import { randomBytes } from "node:crypto";
import { policyBody } from "../../../api-server/test/resources.ts";
import { hashKey, makeKeyString } from "../../../core/keys/key-string.ts";
import type { PolicyFields } from "../../../core/manifests/from-store/policy-spec.ts";
import { type Journal, SEED_ID } from "../journal.ts";
import type { KeyKind } from "../model.ts";
import type { Part } from "../world/part.ts";
import type { Workspace, WorkspaceName, World } from "../world/world.ts";
import { callProcedure, guardedPath } from "./calls.ts";
import { type Http, readJson } from "./http.ts";
import {
  BULK_PERMISSIONS,
  BULK_WORKSPACE,
  bulkPermission,
  CREDITS,
  type Keys,
  LIMIT,
  LIMIT_WINDOW_MS,
  LOCAL_WORKSPACE,
  type LoadRole,
  PERMISSION,
  permissionKey,
  ROLES,
  roleKey,
  roleName,
} from "./keys.ts";

/*
 * The state before the first fault: an API for each workspace, its policy, and the keys, imported by their hashes, some
 * hundred at a time.
 */

const CHUNK = 500;
const TIMEOUT_MS = 60_000;
const LIMITED = 4;
const CREDITED = 4;

export interface Seeded {
  readonly apiIds: Readonly<Record<WorkspaceName, string>>;
  readonly policyIds: Readonly<Record<"main" | "second", string>>;
}

/** The distribution of the keys: more than a page of the projection each. */
const SHARES: Readonly<Record<WorkspaceName, number>> = { main: 0.4, second: 0.4, attacker: 0.2 };

export async function seed(options: {
  world: World;
  http: Http;
  keys: Keys;
  journal: Journal;
  count: number;
  bulkChanges: number;
}): Promise<Seeded> {
  const { world, http, keys } = options;
  keys.bulk.made = Math.min(options.bulkChanges, BULK_PERMISSIONS);
  const part = world.apiServers[0];
  if (part === undefined) throw new Error("no api-server runs yet");
  const data = async <T>(workspace: Workspace, procedure: string, body: unknown): Promise<T> => {
    const result = await callProcedure(http, {
      ...{ part, workspace, procedure, body },
      ...{ id: SEED_ID, timeoutMs: TIMEOUT_MS },
    });
    if (result.kind !== "answered" || result.status !== 200) {
      throw new Error(`${procedure}: ${result.kind === "answered" ? result.text : result.why}`);
    }
    return (readJson<{ data: T }>(result.text) as { data: T }).data;
  };
  const apiId = async (name: WorkspaceName) => {
    const workspace = world.workspaces[name];
    const { apiId } = await data<{ apiId: string }>(workspace, "apis.createApi", { name });
    const seeding = { ...options, part, workspace, apiId, data };
    if (name !== "attacker") await seedRoles(seeding);
    await seedKeys(seeding);
    if (name === BULK_WORKSPACE) {
      for (const slug of bulkSlugs(keys)) noteGrant(seeding, "permission", permissionKey(slug));
    }
    return apiId;
  };
  const apiIds = { main: await apiId("main"), second: await apiId("second"), attacker: await apiId("attacker") };
  const policyId = async (name: "main" | "second"): Promise<string> => {
    const body = policyBody(apiIds[name], name, policyOf(name, [PERMISSION, ...bulkSlugs(keys)]));
    const { ids } = await data<{ ids: { policyId: string } }>(world.workspaces[name], "managed.applyObject", body);
    return ids.policyId;
  };
  return { apiIds, policyIds: { main: await policyId("main"), second: await policyId("second") } };
}

/** `main` fails closed when the store is down; `second` counts in the pod and denies what is stale. */
const policyOf = (name: "main" | "second", slugs: readonly string[]): PolicyFields => ({
  rules: [
    ...slugs.map((slug) => ({
      match: { path: { prefix: guardedPath(slug) } },
      permissions: slug,
      credits: { cost: 0 },
    })),
    {},
  ],
  onStale: { action: name === "main" ? "Serve" : "Deny" },
  onCounterFailure: name === LOCAL_WORKSPACE ? "Local" : "Deny",
});

interface Seeding {
  readonly keys: Keys;
  readonly journal: Journal;
  readonly count: number;
  readonly part: Part;
  readonly workspace: Workspace;
  readonly apiId: string;
  readonly data: <T>(workspace: Workspace, procedure: string, body: unknown) => Promise<T>;
}

const bulkSlugs = ({ bulk }: Keys): string[] => Array.from({ length: bulk.made }, (_, n) => bulkPermission(n));

async function seedRoles(options: Seeding): Promise<void> {
  const { keys, workspace, data } = options;
  for (let n = 0; n < ROLES; n++) {
    const name = roleName(n);
    const body = { name, permissions: [PERMISSION] };
    const { roleId } = await data<{ roleId: string }>(workspace, "permissions.createRole", body);
    const state = { grants: true, uncertain: false, busy: false };
    keys.roles.push({ name, workspace: workspace.name, roleId, keys: [], ...state });
    noteGrant(options, "role", roleKey(workspace.name, name));
  }
}

/** Recorded as a change: from now on it grants a permission to many keys. */
function noteGrant({ journal, workspace, part }: Seeding, subject: "role" | "permission", key: string): void {
  const nowMs = Date.now();
  journal.add({
    ...{ type: "change", subject, id: SEED_ID, workspace: workspace.name, key, change: { kind: "permit" } },
    ...{ via: part.name, sentMs: nowMs, answeredMs: nowMs, outcome: "acknowledged", status: 200 },
  });
}

async function seedKeys(options: Seeding): Promise<void> {
  const { keys, journal, workspace, apiId, data } = options;
  const { name: workspaceName, migrationId } = workspace;
  const count = Math.ceil(options.count * SHARES[workspaceName]);
  const bulk = workspaceName === BULK_WORKSPACE ? bulkSlugs(keys) : [];
  const roles = keys.roles.filter((role) => role.workspace === workspaceName);
  for (let from = 0; from < count; from += CHUNK) {
    const made = Array.from({ length: Math.min(CHUNK, count - from) }, (_, i) => aKey(workspaceName, from + i, roles));
    const sentMs = Date.now();
    const { migrated } = await data<{ migrated: Array<{ hash: string; keyId: string }> }>(
      workspace,
      "keys.migrateKeys",
      {
        migrationId,
        apiId,
        keys: made.map((key) => ({
          hash: hashKey(key.secret),
          name: key.name,
          ...extras(key.kind),
          permissions: [...(key.permitted ? [PERMISSION] : []), ...bulk],
          roles: key.role === undefined ? [] : [key.role.name],
        })),
      },
    );
    const answeredMs = Date.now();
    const ids = new Map(migrated.map(({ hash, keyId }) => [hash, keyId]));
    for (const { name, kind, secret, permitted, role } of made) {
      const keyId = ids.get(hashKey(secret));
      if (keyId === undefined) throw new Error(`${name} was not imported`);
      const state = { exists: true, enabled: true, expired: false, permitted, note: 0 };
      keys.add({ name, workspace: workspaceName, kind, secret, keyId, role, bulk: bulk.length > 0 }, state);
      journal.add({
        ...{ type: "change", subject: "key", id: SEED_ID, workspace: workspaceName, key: name },
        ...{ change: { kind: "create", permitted }, via: options.part.name, sentMs, answeredMs },
        ...{ outcome: "acknowledged", status: 200 },
      });
    }
  }
}

interface NewKey {
  readonly name: string;
  readonly kind: KeyKind;
  readonly permitted: boolean;
  readonly secret: string;
  readonly role: LoadRole | undefined;
}

/** Half of the keys hold the permission themselves, a quarter may get it by a role, and a quarter do not hold it. */
function aKey(workspace: WorkspaceName, n: number, roles: readonly LoadRole[]): NewKey {
  const kind =
    workspace === "attacker" ? "plain" : n < LIMITED ? "limited" : n < LIMITED + CREDITED ? "credited" : "plain";
  const secret = makeKeyString({ prefix: workspace, randomBytes: randomBytes(16) }).key;
  const role = n % 4 === 1 ? roles[Math.floor(n / 4) % roles.length] : undefined;
  return { name: `${workspace}-${n}`, kind, permitted: n % 2 === 0, secret, role };
}

function extras(kind: KeyKind): object {
  if (kind === "credited") return { credits: { remaining: CREDITS } };
  if (kind === "plain") return {};
  return { ratelimits: [{ name: "requests", limit: LIMIT, duration: LIMIT_WINDOW_MS, autoApply: true }] };
}
