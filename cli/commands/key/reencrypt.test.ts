import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { insertKeySecret, listKeySecrets } from "../../../api-server/db/key-secrets.ts";
import { createKeyVault, type EncryptionKey } from "../../../api-server/keys/key-vault.ts";
import { waitFor } from "../../../test/harness/wait.ts";
import type { Io } from "../../command.ts";
import { COMMANDS } from "../../commands.ts";
import { runCommand } from "../../run-command.ts";
import { type Cli, openCli } from "../../test/cli.ts";

const anEncryptionKey = (id: string): EncryptionKey => ({ id, secret: randomBytes(32) });
const [old, current, lost] = [anEncryptionKey("old"), anEncryptionKey("current"), anEncryptionKey("lost")];
const asText = (...keys: EncryptionKey[]): string =>
  keys.map(({ id, secret }) => `${id}:${Buffer.from(secret).toString("base64")}`).join(",");

let cli: Cli;
let workspaceId: string;
beforeAll(async () => {
  cli = await openCli();
  ({ workspaceId } = await cli.json("rootkey create --permissions api.*.create_api"));
  await cli.db.query(
    "insert into apis (id, workspace_id, key_space_id, name, created_at) values ('api_1', $1, 'ks_1', 'payments', 0)",
    [workspaceId],
  );
});
afterAll(() => cli.close());

/** Stores a key whose plaintext is its id, encrypted with this encryption key. */
async function store(keyId: string, sealedBy: EncryptionKey): Promise<void> {
  await cli.db.query(
    "insert into keys (id, workspace_id, api_id, hash, start, created_at) values ($1, $2, 'api_1', $1, '', 0)",
    [keyId, workspaceId],
  );
  const owner = { workspaceId, keyId };
  const sealed = createKeyVault([sealedBy], { randomBytes }).seal(owner, keyId);
  await insertKeySecret(cli.db, { ...owner, sealed, createdAt: 0 });
}

const run = async (json: boolean, ...keys: EncryptionKey[]) => {
  const { code, out } = await cli.run(`key reencrypt${json ? " --json" : ""}`, {
    env: { POSTERN_ENCRYPTION_KEYS: asText(...keys) },
  });
  return { code, out: out.join("\n") };
};

test("key reencrypt moves every key to the first encryption key and lists the encryption keys still in use", async () => {
  const ids = Array.from({ length: 1100 }, (_, i) => `key_${String(i).padStart(4, "0")}`);
  for (const id of ids) await store(id, old);
  const first = await run(true, current, old);
  expect(first.code).toBe(0);
  expect(JSON.parse(first.out)).toEqual({
    encryptionKeyId: "current",
    reencrypted: ids.length,
    undecipherable: [],
    inUse: ["current"],
  });
  const vault = createKeyVault([current], { randomBytes });
  for (const row of await listKeySecrets(cli.db, { workspaceId, keyIds: ids })) {
    const { key_id: keyId, encryption_key_id: encryptionKeyId, nonce, ciphertext } = row;
    expect(vault.open({ workspaceId, keyId }, { encryptionKeyId, nonce, ciphertext })).toEqual({ key: keyId });
  }
  expect(JSON.parse((await run(true, current, old)).out)).toMatchObject({ reencrypted: 0 });
});

test("key reencrypt shows its progress on a terminal and removes the line", async () => {
  const ids = Array.from({ length: 700 }, (_, i) => `key_shown_${String(i).padStart(4, "0")}`);
  for (const id of ids) await store(id, old);
  const written: string[] = [];
  const blocker = await cli.db.connect();
  await blocker.query("begin");
  await blocker.query("select 1 from key_secrets where key_id = $1 for update", [ids.at(-1)]);
  const io: Io = {
    env: { DATABASE_URL: cli.databaseUrl, POSTERN_ENCRYPTION_KEYS: asText(current, old) },
    out: () => undefined,
    note: () => undefined,
    screen: { columns: 80, write: (text) => void written.push(text) },
  };
  const done = runCommand(COMMANDS, ["key", "reencrypt"], io);
  await waitFor("the line", () => written.some((text) => text.includes("re-encrypting: 500 of 700 keys, 71 %")));
  await blocker.query("rollback");
  blocker.release();
  expect(await done).toBe(0);
  expect(written.at(-1)).toBe("\r\u001b[K");
});

test("key reencrypt fails for a key that it cannot decrypt, and names it in text and JSON", async () => {
  await store("key_lost", lost);
  expect(await run(true, current, old)).toMatchObject({ code: 1 });
  const { code, out } = await run(false, current);
  expect(code).toBe(1);
  expect(out).toMatch(/undecipherable +key_lost/);
  expect(out).toMatch(/still in use +current, lost/);
  expect(await run(true, current, lost)).toMatchObject({ code: 0 });
});

test("key reencrypt requires encryption keys", async () => {
  expect(await cli.failure("key reencrypt", 2)).toContain("POSTERN_ENCRYPTION_KEYS");
});
