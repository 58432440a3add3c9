import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { countKeySecrets } from "../../db/key-secrets.ts";
import { decryptKeys, reencryptKeys } from "../../domain/keys/recoverable-keys.ts";
import { createKeyVault, type EncryptionKey, type KeyVault } from "../../keys/key-vault.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";

/* The API as it is with these encryption keys; a test may change them, as a restart with another configuration would. */
let vault: KeyVault | undefined;
const anEncryptionKey = (id: string): EncryptionKey => ({ id, secret: randomBytes(32) });
const first = anEncryptionKey("first");
const second = anEncryptionKey("second");
const configure = (...keys: EncryptionKey[]): void => {
  const [sealing, ...older] = keys;
  vault = sealing && createKeyVault([sealing, ...older], { randomBytes });
};

let t: TestApp;
/** An API that keeps encrypted copies, and one that does not. */
let apiId: string;
let plainApiId: string;
beforeAll(async () => {
  configure(first);
  t = await buildTestApp();
  Object.defineProperty(t.deps, "keyVault", { get: () => vault });
  ({ apiId } = await t.data("apis.createApi", { name: "recoverable" }));
  ({ apiId: plainApiId } = await t.data("apis.createApi", { name: "plain" }));
  await t.deps.db.query("update apis set key_encryption = true where id = $1", [apiId]);
});
afterAll(() => t.close());

const create = (body: object = {}) => t.data("keys.createKey", { apiId, recoverable: true, ...body });
const reveal = (keyId: string) => t.data("keys.getKey", { keyId, decrypt: true });
const outcome = async (path: string, body: object, rootKey?: string) => {
  const reply = await t.call(path, body, rootKey === undefined ? {} : { rootKey });
  return reply.status === 200 ? 200 : [reply.status, reply.body.error.detail];
};

/** The tables whose rows hold the text, as it is or as bytes. */
async function tablesWith(text: string): Promise<string[]> {
  const { rows: tables } = await t.deps.db.query<{ name: string }>(
    "select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'",
  );
  expect(tables.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["keys", "key_secrets", "audit_log", "outbox"]),
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const { rowCount } = await t.deps.db.query(
      `select from "${name}" as r where position($1 in r::text) > 0 or position($2 in r::text) > 0 limit 1`,
      [text, Buffer.from(text).toString("hex")],
    );
    if (rowCount !== 0) found.push(name);
  }
  return found;
}

describe("a recoverable key", () => {
  test("recoverable key is returned by getKey and listKeys only on request", async () => {
    const { keyId, key } = await create({ prefix: "prod" });
    expect(await reveal(keyId)).toMatchObject({ keyId, plaintext: key });
    expect(await t.data("keys.getKey", { keyId })).not.toHaveProperty("plaintext");
    const list = async (decrypt: boolean) => {
      const keys = await t.data("apis.listKeys", { apiId, decrypt });
      return keys.find((one: { keyId: string }) => one.keyId === keyId);
    };
    expect(await list(true)).toMatchObject({ plaintext: key });
    expect(await list(false)).not.toHaveProperty("plaintext");
    expect((await t.data("keys.verifyKey", { key })).code).toBe("VALID");
  });

  test("recoverable key stays recoverable when updated, disabled or expired", async () => {
    const { keyId, key } = await create();
    await t.data("keys.updateKey", { keyId, enabled: false, expires: 0, name: "other" });
    expect((await reveal(keyId)).plaintext).toBe(key);
  });

  test("non-recoverable key in a list with a recoverable key has no plaintext", async () => {
    const { keyId } = await create({ recoverable: false });
    expect(await reveal(keyId)).not.toHaveProperty("plaintext");
  });

  test("recoverable key never appears unencrypted in tables, logs or audit entries", async () => {
    const { keyId, key } = await create({
      externalId: "somebody",
      permissions: ["documents.read"],
      name: "secret one",
    });
    await reveal(keyId);
    await t.data("keys.verifyKey", { key });
    await t.data("keys.rerollKey", { keyId, expiration: 60_000 });
    expect(await tablesWith(key)).toEqual([]);
    expect(await tablesWith(key.slice(4))).toEqual([]);
    expect(t.logs.join()).not.toContain(key);
    // The search finds what is there.
    expect(await tablesWith("secret one")).toEqual(expect.arrayContaining(["audit_log", "keys"]));
  });

  test("permanent deletion of a recoverable key also deletes its encrypted copy", async () => {
    const { keyId } = await create();
    await t.data("keys.deleteKey", { keyId, permanent: true });
    expect((await t.deps.db.query("select from key_secrets where key_id = $1", [keyId])).rowCount).toBe(0);
  });

  test("failed creation of a recoverable key stores nothing", async () => {
    const count = async () => (await t.deps.db.query("select from key_secrets")).rowCount;
    const before = await count();
    expect((await t.call("keys.createKey", { apiId, recoverable: true, roles: ["missing"] })).status).toBe(404);
    expect(await count()).toBe(before);
  });
});

describe("order of checks", () => {
  const badRefill = { credits: { remaining: null, refill: { interval: "daily", amount: 1 } }, roles: ["missing"] };
  const noBackend = [412, expect.stringContaining("no encryption keys")];
  const notEnabled = [412, expect.stringContaining("not enabled")];
  const lacks = (permission: string) => [403, expect.stringContaining(`api.*.${permission}`)];

  test("createKey for a recoverable key checks for 404, 403, 412, 403, 412, 400 and 404 in this order", async () => {
    const [none, creating, both] = await Promise.all([
      t.rootKey(["api.*.read_key"]),
      t.rootKey(["api.*.create_key"]),
      t.rootKey(["api.*.create_key", "api.*.encrypt_key"]),
    ]);
    const ask = (to: string | undefined, body: object = {}) =>
      outcome("keys.createKey", { apiId: plainApiId, recoverable: true, ...badRefill, ...body }, to);
    configure();
    expect(await ask(none, { apiId: "api_missing0" })).toEqual([404, expect.any(String)]);
    expect(await ask(none)).toEqual(lacks("create_key"));
    expect(await ask(creating)).toEqual(noBackend);
    configure(first);
    expect(await ask(creating)).toEqual(lacks("encrypt_key"));
    expect(await ask(both)).toEqual(notEnabled);
    expect(await ask(both, { apiId })).toEqual([400, expect.any(String)]);
    expect(await ask(both, { apiId, credits: undefined })).toEqual([404, expect.stringContaining("role")]);
    expect(await ask(both, { apiId, credits: undefined, roles: [] })).toBe(200);
    configure();
    expect(await ask(creating, { recoverable: false, credits: undefined, roles: [] })).toBe(200);
    configure(first);
  });

  test("getKey with decrypt checks for 404, 403 (read), 412, 403 (decrypt) and 412 in this order", async () => {
    const { keyId } = await create();
    const { keyId: plain } = await create({ apiId: plainApiId, recoverable: false });
    const [none, reading, both] = await Promise.all([
      t.rootKey(["api.*.create_key"]),
      t.rootKey(["api.*.read_key"]),
      t.rootKey(["api.*.read_key", `api.${apiId}.decrypt_key`, `api.${plainApiId}.decrypt_key`]),
    ]);
    const ask = (to: string, id: string) => outcome("keys.getKey", { keyId: id, decrypt: true }, to);
    configure();
    expect(await ask(none, "key_missing")).toEqual([404, expect.any(String)]);
    expect(await ask(none, plain)).toEqual(lacks("read_key"));
    expect(await ask(reading, plain)).toEqual(noBackend);
    configure(first);
    expect(await ask(reading, plain)).toEqual(lacks("decrypt_key"));
    expect(await ask(both, plain)).toEqual(notEnabled);
    expect(await ask(both, keyId)).toBe(200);
  });

  test("listKeys with decrypt checks for 404, 403 (read), 412, 403 (decrypt) and 412 in this order", async () => {
    const reads = ["api.*.read_key", "api.*.read_api"];
    const [none, reading, both] = await Promise.all([
      t.rootKey(["api.*.read_key"]),
      t.rootKey(reads),
      t.rootKey([...reads, "api.*.decrypt_key"]),
    ]);
    const ask = (to: string, id: string) => outcome("apis.listKeys", { apiId: id, decrypt: true }, to);
    configure();
    expect(await ask(none, "api_missing0")).toEqual([404, expect.any(String)]);
    expect(await ask(none, plainApiId)).toEqual(lacks("read_api"));
    expect(await ask(reading, plainApiId)).toEqual(noBackend);
    configure(first);
    expect(await ask(reading, plainApiId)).toEqual(lacks("decrypt_key"));
    expect(await ask(both, plainApiId)).toEqual(notEnabled);
    expect(await ask(both, apiId)).toBe(200);
  });
});

describe("rotation of the encryption keys", () => {
  test("encryption key rotation keeps old copies readable, encrypts new copies with the new key, and then re-encrypts the old ones", async () => {
    configure(first);
    const before = await Promise.all([create(), create(), create()]);
    configure(second, first);
    const after = await create();
    for (const { keyId, key } of [...before, after]) expect((await reveal(keyId)).plaintext).toBe(key);

    let cursor: string | undefined = "";
    let moved = 0;
    while (cursor !== undefined && vault !== undefined) {
      const batch = await reencryptKeys({ db: t.deps.db, vault }, { after: cursor, max: 2 });
      expect(batch.undecipherable).toEqual([]);
      moved += batch.reencrypted;
      cursor = batch.cursor;
    }
    expect(moved).toBeGreaterThanOrEqual(before.length);
    expect((await countKeySecrets(t.deps.db)).map((row) => row.encryption_key_id)).toEqual(["second"]);

    configure(second);
    for (const { keyId, key } of [...before, after]) expect((await reveal(keyId)).plaintext).toBe(key);
    configure(second, first);
  });

  test("removing an encryption key too early hides plaintexts and is logged, and restoring it makes them available again", async () => {
    configure(first);
    const { keyId, key } = await create();
    configure(second);
    expect(await reveal(keyId)).not.toHaveProperty("plaintext");
    expect(t.logs.join()).toContain("the encryption key first is not configured");
    expect(t.logs.join()).not.toContain(key);
    const { undecipherable } = await reencryptKeys(
      { db: t.deps.db, vault: vault as KeyVault },
      { after: "", max: 100 },
    );
    expect(undecipherable).toContain(keyId);
    configure(second, first);
    expect((await reveal(keyId)).plaintext).toBe(key);
  });

  test("concurrent re-encryption runs process each recoverable key only once", async () => {
    configure(first);
    const keys = await Promise.all([create(), create(), create()]);
    configure(second, first);
    const counts = async () =>
      new Map((await countKeySecrets(t.deps.db)).map((row) => [row.encryption_key_id, row.count]));
    const before = await counts();
    const db = t.deps.db;
    const move = () => reencryptKeys({ db, vault: vault as KeyVault }, { after: "", max: 100 });
    const moved = await Promise.all([move(), move(), move()]);
    expect(moved.reduce((sum, { reencrypted }) => sum + reencrypted, 0)).toBe(before.get("first"));
    expect(await counts()).toEqual(new Map([["second", (before.get("first") ?? 0) + (before.get("second") ?? 0)]]));
    for (const { keyId, key } of keys) expect((await reveal(keyId)).plaintext).toBe(key);
  });
});

test("key list omits the plaintext of a tampered copy", async () => {
  const [whole, tampered, swapped] = await Promise.all([create(), create(), create()]);
  await t.deps.db.query(
    "update key_secrets set ciphertext = set_byte(ciphertext, 0, get_byte(ciphertext, 0) # 1) where key_id = $1",
    [tampered.keyId],
  );
  await t.deps.db.query(
    `update key_secrets s
        set nonce = o.nonce, ciphertext = o.ciphertext, encryption_key_id = o.encryption_key_id
       from key_secrets o
      where s.key_id = $1 and o.key_id = $2`,
    [swapped.keyId, whole.keyId],
  );
  const keys: { keyId: string; plaintext?: string }[] = await t.data("apis.listKeys", { apiId, decrypt: true });
  const plaintextOf = (keyId: string) => keys.find((key) => key.keyId === keyId)?.plaintext;
  expect(plaintextOf(whole.keyId)).toBe(whole.key);
  expect(plaintextOf(tampered.keyId)).toBeUndefined();
  expect(plaintextOf(swapped.keyId)).toBeUndefined();
  const direct = await decryptKeys(t.deps, vault as KeyVault, {
    workspaceId: "ws_another",
    keyIds: [whole.keyId],
  });
  expect(direct.size).toBe(0);
});
