import { randomBytes } from "node:crypto";
import { hashKey, makeKeyString } from "../../../core/keys/key-string.ts";
import { aPolicy } from "../../harness/gate.ts";
import type { Journal } from "../journal.ts";
import type { KeyKind } from "../model.ts";
import type { Part } from "../world/part.ts";
import type { Workspace, WorkspaceName, World } from "../world/world.ts";
import { callProcedure } from "./calls.ts";
import { type Http, readJson } from "./http.ts";
import { CREDITS, type Keys, LIMIT, LIMIT_WINDOW_MS, PERMISSION } from "./keys.ts";

/*
 * What is there before the first fault: an API for each workspace, its policy, and the keys, imported by their hashes, some
 * hundred at a time.
 */

const CHUNK = 500;
const TIMEOUT_MS = 60_000;
const LIMITED = 4;
const CREDITED = 6;

/** Permissions of the attacker's workspace that each of its keys holds, until a bulk change deletes one. */
export const BULK_PERMISSIONS = 12;
export const bulkPermission = (n: number): string => `bulk.${n}`;

export interface Seeded {
  readonly apiIds: Readonly<Record<WorkspaceName, string>>;
  readonly policyIds: Readonly<Record<"main" | "second", string>>;
}

/** How the keys are shared out: more than a page of the projection each. */
const SHARES: Readonly<Record<WorkspaceName, number>> = { main: 0.4, second: 0.2, attacker: 0.4 };

export async function seed(options: {
  world: World;
  http: Http;
  keys: Keys;
  journal: Journal;
  count: number;
  bulkChanges: number;
}): Promise<Seeded> {
  const { world, http } = options;
  const part = world.apiServers[0];
  if (part === undefined) throw new Error("no api-server runs yet");
  const data = async <T>(workspace: Workspace, procedure: string, body: unknown): Promise<T> => {
    const result = await callProcedure(http, {
      ...{ part, workspace, procedure, body },
      ...{ id: "torture/seed", timeoutMs: TIMEOUT_MS },
    });
    if (result.kind !== "answered" || result.status !== 200) {
      throw new Error(`${procedure}: ${result.kind === "answered" ? result.text : result.why}`);
    }
    return (readJson<{ data: T }>(result.text) as { data: T }).data;
  };
  const apiId = async (name: WorkspaceName) => {
    const workspace = world.workspaces[name];
    const { apiId } = await data<{ apiId: string }>(workspace, "apis.createApi", { name });
    await seedKeys({ ...options, part, workspace, apiId, data });
    return apiId;
  };
  const apiIds = { main: await apiId("main"), second: await apiId("second"), attacker: await apiId("attacker") };
  const policyId = async (name: "main" | "second"): Promise<string> => {
    const body = { apiId: apiIds[name], name: `torture/default/${name}`, uid: name, generation: 1 };
    const policy = policyOf(name, apiIds[name]);
    return (await data<{ policyId: string }>(world.workspaces[name], "policies.setPolicy", { ...body, policy }))
      .policyId;
  };
  return { apiIds, policyIds: { main: await policyId("main"), second: await policyId("second") } };
}

/** `main` fails closed where the store is away; `second` counts in the pod and denies what is stale. */
const policyOf = (name: "main" | "second", apiId: string) =>
  aPolicy({
    apiId,
    rules: [
      { path: { prefix: "/guarded" }, access: "Key", permissions: PERMISSION, creditCost: 0, ratelimits: [] },
      { access: "Key", creditCost: 1, ratelimits: [] },
    ],
    onStale: { afterMs: 30_000, action: name === "main" ? "Serve" : "Deny", denyAfterMs: 900_000 },
    onCounterFailure: name === "main" ? "Deny" : "Local",
  });

async function seedKeys(options: {
  keys: Keys;
  journal: Journal;
  count: number;
  bulkChanges: number;
  part: Part;
  workspace: Workspace;
  apiId: string;
  data: <T>(workspace: Workspace, procedure: string, body: unknown) => Promise<T>;
}): Promise<void> {
  const { keys, journal, workspace, apiId, data } = options;
  const { name: workspaceName, migrationId } = workspace;
  const count = Math.ceil(options.count * SHARES[workspaceName]);
  const bulk = Array.from({ length: Math.min(options.bulkChanges, BULK_PERMISSIONS) }, (_, n) => bulkPermission(n));
  for (let from = 0; from < count; from += CHUNK) {
    const made = Array.from({ length: Math.min(CHUNK, count - from) }, (_, i) => aKey(workspaceName, from + i));
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
          permissions: [...(key.permitted ? [PERMISSION] : []), ...(workspaceName === "attacker" ? bulk : [])],
        })),
      },
    );
    const answeredMs = Date.now();
    const ids = new Map(migrated.map(({ hash, keyId }) => [hash, keyId]));
    for (const { name, kind, secret, permitted } of made) {
      const keyId = ids.get(hashKey(secret));
      if (keyId === undefined) throw new Error(`${name} was not imported`);
      const state = { exists: true, enabled: true, expired: false, permitted, note: 0 };
      keys.add({ name, workspace: workspaceName, kind, secret, keyId }, state);
      journal.add({
        ...{ type: "change", id: "torture/seed", workspace: workspaceName, key: name },
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
}

function aKey(workspace: WorkspaceName, n: number): NewKey {
  const kind =
    workspace === "attacker" ? "plain" : n < LIMITED ? "limited" : n < LIMITED + CREDITED ? "credited" : "plain";
  const secret = makeKeyString({ prefix: workspace, randomBytes: randomBytes(16) }).key;
  return { name: `${workspace}-${n}`, kind, permitted: n % 2 === 0, secret };
}

function extras(kind: KeyKind): object {
  if (kind === "credited") return { credits: { remaining: CREDITS } };
  if (kind === "plain") return {};
  return { ratelimits: [{ name: "requests", limit: LIMIT, duration: LIMIT_WINDOW_MS, autoApply: true }] };
}
