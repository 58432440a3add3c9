import { expect, test } from "vitest";
import { hashKey } from "../../core/keys/key-string.ts";
import { waitFor } from "../harness/wait.ts";
import type { Api } from "./client.ts";
import { openSystem } from "./system.ts";

const CALLS = 3;
const KEYS_OF_A_CALL = 100;
const KILLS = 2;

test(`each queued key is created once although api-servers are killed ${KILLS} times with SIGKILL`, async () => {
  const system = await openSystem();
  const survivor = await system.api();
  const { apiId } = await survivor.data("apis.createApi", { name: "payments" });
  const secrets: string[] = [];
  const enqueue = async (api: Api): Promise<void> => {
    const some = Array.from({ length: KEYS_OF_A_CALL }, (_, n) => `old_${secrets.length + n}_of_this_test`);
    secrets.push(...some);
    const keys = some.map((secret, n) =>
      n % 2 === 0 ? { plaintext: secret } : { hash: { value: hashKey(secret), variant: "sha256_base64" } },
    );
    const reply = await api.call("v1/migrations.enqueueKeys", { migrationId: "mig", apiId, keys });
    expect([reply.status, reply.body]).toEqual([202, {}]);
  };
  const count = async (table: "keys" | "queued_keys"): Promise<number> => {
    const { rows } = await system.db.query<{ count: number }>(`select count(*) as count from ${table}`);
    return rows[0]?.count ?? 0;
  };

  const left: number[] = [];
  for (let kill = 1; kill <= KILLS; kill++) {
    const doomed = await system.spawnApi();
    for (let call = 0; call < CALLS; call++) await enqueue(call % 2 === 0 ? doomed : survivor);
    const before = await count("keys");
    await waitFor("keys to be created", async () => (await count("keys")) > before + 10, { everyMs: 1 });
    doomed.process.kill("SIGKILL");
    left.push(await count("queued_keys"));
    await doomed.process.exited;
  }
  expect(Math.min(...left), "keys were waiting at each kill").toBeGreaterThan(0);

  await waitFor("all to be created", async () => (await count("queued_keys")) === 0, { deadlineMs: 120_000 });
  expect(await count("keys")).toBe(secrets.length);
  const { rows } = await system.db.query<{ count: number }>(
    "select count(distinct targets -> 0 ->> 'id') as count from audit_log where event = 'key.create' having count(*) = $1",
    [secrets.length],
  );
  expect(rows[0]?.count).toBe(secrets.length);
  for (const secret of secrets) {
    expect((await survivor.data("keys.verifyKey", { key: secret })).code, secret).toBe("VALID");
  }
});
