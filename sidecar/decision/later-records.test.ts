import { afterEach, describe, expect, test } from "vitest";
import type { RecordKind } from "../../edge/records.ts";
import { API, call, kindOf, openGate, type TestGate, WORKSPACE, waitFor, withKey } from "../../test/harness/gate.ts";

/*
 * Records of a later version. Unknown members are ignored. A record whose meaning an older reader would miss (for example a key that is
 * valid only from some addresses) has a later format and is unusable: 503, never VALID.
 */

let gate: TestGate;
afterEach(() => gate.close());

const LATER = { formatVersion: 2, allowedIps: ["192.0.2.1"] };
const respond = (key: string) => call(gate.port, withKey(key));
const status = async (key: string) => (await respond(key)).status;

/** Opens a gate with a key that uses every kind of reference. */
async function openWithKey(): Promise<string> {
  gate = await openGate();
  await gate.records.putRole({ id: "role_1", name: "editor", permissions: ["a"] });
  await gate.records.putIdentity({ id: "id_1", externalId: "acme", ratelimits: [] });
  const key = await gate.records.putKey({ roleIds: ["role_1"], identityId: "id_1" });
  await gate.caughtUp();
  return key;
}

const REFERRED: ReadonlyArray<{ kind: RecordKind; id: string; data: object }> = [
  { kind: "workspace", id: WORKSPACE, data: { id: WORKSPACE, enabled: true } },
  { kind: "api", id: API, data: { id: API, name: "orders" } },
  { kind: "identity", id: "id_1", data: { id: "id_1", externalId: "acme", ratelimits: [] } },
  { kind: "role", id: "role_1", data: { id: "role_1", name: "editor", permissions: ["a"] } },
];

test("gate responds 503 for a key in a newer record format until it supports that format", async () => {
  const key = await openWithKey();
  expect(await status(key)).toBe(200);
  await gate.records.putAnyKey(key, LATER);
  await waitFor("the gate to know", async () => (await status(key)) === 503);
  expect(kindOf(await respond(key))).toBe("verification_unavailable");
  await gate.records.putAnyKey(key, { formatVersion: 1, allowedIps: ["192.0.2.1"], nested: { deep: [1] } });
  await waitFor("the gate to know", async () => (await status(key)) === 200);
});

test.each(["2", 0, -1, 1.5, null, Number.MAX_VALUE, {}])("record format %j is invalid", async (formatVersion) => {
  const key = await openWithKey();
  await gate.records.putAnyKey(key, { formatVersion });
  await waitFor("the gate to know", async () => (await status(key)) === 503);
});

test.each(REFERRED)("gate responds 503 for a key whose $kind has a newer record format", async ({ kind, id, data }) => {
  const key = await openWithKey();
  expect(await status(key)).toBe(200);
  await gate.records.putAny(kind, id, { ...data, formatVersion: 2 });
  await waitFor("the gate to know", async () => (await status(key)) === 503);
  await gate.records.putAny(kind, id, { ...data, added: { later: true } });
  await waitFor("the gate to know", async () => (await status(key)) === 200);
});

describe("records cached before a reset", () => {
  test("gate never falls back to a cached record when the current one has a newer format", async () => {
    const key = await openWithKey();
    const other = await gate.records.putKey();
    expect([await status(key), await status(other)]).toEqual([200, 200]);
    // A new projection sends no change, so the old record still counts as live.
    await gate.records.begin("projection-2");
    await gate.records.putAnyKey(key, { roleIds: [], identityId: undefined, ...LATER }, { announced: false });
    await gate.records.putKey({}, other);
    await gate.records.complete();
    await waitFor("the other key to be read anew", async () => (await status(other)) === 200);
    expect(await status(key)).toBe(503);
    expect(await status(key)).toBe(503);
  });
});
