import { randomBytes, subtle } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createKeyVault, type EncryptionKey, type SealedString } from "./key-vault.ts";

const anEncryptionKey = (id: string): EncryptionKey => ({ id, secret: randomBytes(32) });
const old = anEncryptionKey("2025");
const current = anEncryptionKey("2026");
const vault = createKeyVault([current, old], { randomBytes });

const owner = { workspaceId: "ws_1", keyId: "key_1" };
const KEY = "prod_5Kd3NBUAdUnhyzenEwVLy9pBKxSwXvE9FMPyR4UKZvpe";

test("key vault encrypts and decrypts any string", () => {
  for (const key of [KEY, "x", "schlüssel 🗝", "k".repeat(512)]) {
    expect(vault.open(owner, vault.seal(owner, key))).toEqual({ key });
  }
});

test("key vault never encrypts the same string to the same bytes twice", () => {
  const [one, other] = [vault.seal(owner, KEY), vault.seal(owner, KEY)];
  expect(one.nonce).not.toEqual(other.nonce);
  expect(one.ciphertext).not.toEqual(other.ciphertext);
  expect(Buffer.from(one.ciphertext).includes(KEY.slice(0, 8))).toBe(false);
});

test("key vault encrypts with the first encryption key and decrypts with any of them", () => {
  const before = createKeyVault([old], { randomBytes });
  expect(vault.seal(owner, KEY).encryptionKeyId).toBe("2026");
  expect(vault.sealingKeyId).toBe("2026");
  expect(vault.open(owner, before.seal(owner, KEY))).toEqual({ key: KEY });
  expect(before.open(owner, vault.seal(owner, KEY))).toEqual({ problem: "the encryption key 2026 is not configured" });
});

describe("ciphertext that cannot be decrypted", () => {
  const sealed = vault.seal(owner, KEY);
  const flip = (bytes: Uint8Array, at: number): Uint8Array =>
    Uint8Array.from(bytes, (byte, i) => (i === (at + bytes.length) % bytes.length ? byte ^ 1 : byte));

  test.each<{ name: string; of?: Partial<typeof owner>; is?: Partial<SealedString> }>([
    { name: "as another key's", of: { keyId: "key_2" } },
    { name: "as another workspace's", of: { workspaceId: "ws_2" } },
    { name: "with another nonce", is: { nonce: flip(sealed.nonce, 0) } },
    { name: "with a bit of the text changed", is: { ciphertext: flip(sealed.ciphertext, 0) } },
    { name: "with a bit of the tag changed", is: { ciphertext: flip(sealed.ciphertext, -1) } },
    { name: "cut short", is: { ciphertext: sealed.ciphertext.subarray(0, -1) } },
    { name: "cut to less than a tag", is: { ciphertext: sealed.ciphertext.subarray(0, 15) } },
    { name: "empty", is: { ciphertext: new Uint8Array() } },
    { name: "under another encryption key's id", is: { encryptionKeyId: "2025" } },
    { name: "with a nonce of another length", is: { nonce: new Uint8Array() } },
  ])("key vault fails to decrypt a ciphertext that is changed or moved: $name", ({ of, is }) => {
    const opened = vault.open({ ...owner, ...of }, { ...sealed, ...is });
    expect(opened).toEqual({ problem: expect.stringContaining("cannot be authenticated") });
    expect(JSON.stringify(opened)).not.toContain(KEY.slice(0, 8));
  });

  test("key vault fails to decrypt if the encryption key has the same id but different bytes", () => {
    const other = createKeyVault([anEncryptionKey("2026")], { randomBytes });
    expect(other.open(owner, sealed)).toHaveProperty("problem");
  });
});

test("key vault format matches ADR 0008, checked by an independent implementation", async () => {
  const { nonce, ciphertext } = vault.seal(owner, KEY);
  const text = (value: string) => new TextEncoder().encode(value);
  const encryptionKey = await subtle.importKey("raw", Uint8Array.from(current.secret), "HKDF", false, ["deriveKey"]);
  const derivation = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info: text("postern key secret 1 ws_1") };
  const dataKey = await subtle.deriveKey(derivation, encryptionKey, { name: "AES-GCM", length: 256 }, false, [
    "decrypt",
  ]);
  const additionalData = text('["postern key secret 1","2026","ws_1","key_1"]');
  const opened = await subtle.decrypt(
    { name: "AES-GCM", iv: Uint8Array.from(nonce), additionalData, tagLength: 128 },
    dataKey,
    Uint8Array.from(ciphertext),
  );
  expect(Buffer.from(opened).toString()).toBe(KEY);
});
