import { hash } from "node:crypto";
import { expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { openSystem } from "./system.ts";

const LONG_TOKEN = "51FwqftsmMDHHbJAMEXXHCgG";
const KEY = `acme_BRTRKFsL_${LONG_TOKEN}`;

test("migrated key first used at two api-servers is then accepted by the gate", async () => {
  const system = await openSystem();
  const [a, b] = [await system.api(), await system.api()];
  const { apiId } = await makeKey(a);
  const gate = await system.gate(a, { apiId });
  const { rows } = await system.db.query<{ workspace_id: string }>("select workspace_id from apis where id = $1", [
    apiId,
  ]);
  const migrationId = "mig_elsewhere";
  await system.db.query(
    "insert into migrations (id, workspace_id, name, algorithm, created_at) values ($1, $2, 'elsewhere', 'prefixed', 0)",
    [migrationId, rows[0]?.workspace_id],
  );
  const keys = [{ hash: hash("sha256", LONG_TOKEN, "hex") }];
  const { migrated } = await a.data("keys.migrateKeys", { migrationId, apiId, keys });
  expect(migrated).toHaveLength(1);
  // Both api-servers and the gate have now cached the absence of the key.
  expect([await a.code(KEY), await b.code(KEY), await gate.status(KEY)]).toEqual(["NOT_FOUND", "NOT_FOUND", 401]);

  const codeWith = async (api: typeof a): Promise<string> =>
    (await api.data("keys.verifyKey", { key: KEY, migrationId })).code;
  expect(await Promise.all([a, b, a, b].map(codeWith))).toEqual(["VALID", "VALID", "VALID", "VALID"]);
  expect([await a.code(KEY), await b.code(KEY)]).toEqual(["VALID", "VALID"]);
  await waitFor("the sidecar to let it through", async () => (await gate.status(KEY)) === 200, { deadlineMs: 2000 });
});
