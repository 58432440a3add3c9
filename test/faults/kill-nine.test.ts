import { expect, test } from "vitest";
import { hashKey } from "../../core/keys/key-string.ts";
import type { KeyRecord } from "../../core/records.ts";
import type { RecordSource } from "../../edge/projection/contract.ts";
import { waitFor } from "../harness/wait.ts";
import type { Api } from "./client.ts";
import { openSystem } from "./system.ts";

const KEYS = 24;
const KILLS = 3;

/** A key that is renamed repeatedly: its name is a number that must never be below the acknowledged one. */
interface Renamed {
  readonly keyId: string;
  readonly hash: string;
  sent: number;
  acknowledged: number;
}

/** Renames the key until the server stops responding. */
async function renameUntilDead(api: Api, key: Renamed): Promise<void> {
  for (;;) {
    key.sent += 1;
    const name = String(key.sent);
    try {
      await api.data("keys.updateKey", { keyId: key.keyId, name: name.padStart(3, "0") });
    } catch {
      return;
    }
    key.acknowledged = key.sent;
  }
}

test(`api-server killed ${KILLS} times with SIGKILL during key changes loses no acknowledged change`, async () => {
  const system = await openSystem();
  let child = await system.spawnApi();
  const workspaceId = await system.workspaceId();
  const { source } = await system.edge("test-looking");
  const { apiId } = await child.data("apis.createApi", { name: "payments" });
  const keys: Renamed[] = [];
  for (let i = 0; i < KEYS; i++) {
    const { keyId, key } = await child.data("keys.createKey", { apiId, name: "000" });
    keys.push({ keyId, hash: hashKey(key), sent: 0, acknowledged: 0 });
  }
  const created: string[] = [];

  for (let kill = 1; kill <= KILLS; kill++) {
    const before = keys.reduce((sum, key) => sum + key.acknowledged, 0);
    const creating = createUntilDead(child, apiId, created);
    const renaming = keys.map((key) => renameUntilDead(child, key));
    await waitFor("changes to be under way", () => keys.reduce((sum, key) => sum + key.acknowledged, 0) > before + 50);
    child.process.kill("SIGKILL");
    await Promise.all([...renaming, creating]);
    await child.process.exited;
    child = await system.spawnApi();
  }

  expect(created.length).toBeGreaterThan(0);
  await waitFor("an empty outbox", async () => {
    const { rows } = await system.db.query<{ depth: number }>("select count(*) as depth from outbox");
    return rows[0]?.depth === 0;
  });
  for (const key of keys) {
    const stored = await system.db.query<{ name: string }>("select name from keys where id = $1", [key.keyId]);
    const name = stored.rows[0]?.name ?? "";
    expect(Number(name)).toBeGreaterThanOrEqual(key.acknowledged);
    expect(Number(name)).toBeLessThanOrEqual(key.sent);
    expect((await readKey(source, { workspaceId, hash: key.hash }))?.name).toBe(name);
  }
  for (const secret of created) {
    expect((await readKey(source, { workspaceId, hash: hashKey(secret) }))?.workspaceId).toBe(workspaceId);
    expect((await child.data("keys.verifyKey", { key: secret })).code).toBe("VALID");
  }
  const exit = await child.process.stop();
  expect(exit).toEqual({ code: 0, signal: null });
});

async function createUntilDead(api: Api, apiId: string, created: string[]): Promise<void> {
  for (;;) {
    try {
      created.push((await api.data("keys.createKey", { apiId })).key);
    } catch {
      return;
    }
  }
}

async function readKey(
  source: RecordSource,
  { workspaceId, hash }: { workspaceId: string; hash: string },
): Promise<KeyRecord | undefined> {
  return waitFor("the projected key", async () => {
    const batch = await source.read([{ workspaceId, kind: "key", id: hash }]);
    const record = batch.usable ? batch.records[0] : undefined;
    return record?.state === "found" ? (record.data as KeyRecord) : undefined;
  });
}
