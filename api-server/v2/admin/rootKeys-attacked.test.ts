import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EXPIRES_MAX_MS } from "../../../core/keys/key-hash.ts";
import { ALL_GRANTS } from "../../../core/permissions/root-key.ts";
import { buildTestApp, type Reply, type TestApp } from "../../test/app.ts";

/* What who may manage root keys tries in order to get more than it was given. */

const DAY_MS = 86_400_000;
const MANAGE = ["create", "update", "delete", "read"].map((verb) => `workspace.*.${verb}_root_key`);

let api: TestApp;
beforeAll(async () => {
  api = await buildTestApp();
});
afterAll(() => api.close());

const call = (path: string, body: object, rootKey?: string): Promise<Reply> =>
  api.call(`admin.${path}`, body, rootKey === undefined ? {} : { rootKey });
const kindOf = ({ status, body }: Reply) => [status, body.error?.type.split("/").at(-1)];

interface Made {
  readonly rootKeyId: string;
  readonly rootKey: string;
}

async function make(permissions: readonly string[], body: object = {}): Promise<Made> {
  return (await call("createRootKey", { name: "attacked", permissions, ...body })).body.data;
}
const get = async (rootKeyId: string) => (await call("getRootKey", { rootKeyId })).body.data;
const works = async (rootKey: string): Promise<number> =>
  (await api.call("apis.createApi", { name: "shop" }, { rootKey })).status;

describe("a manager of root keys gains no permission", () => {
  const STRONG = ["api.*.create_api", "installation.*.create_workspace", ...MANAGE];
  /** Each leads to a root key that the thief can use, or to more rights of one that it has. */
  const WAYS: readonly {
    readonly name: string;
    readonly make: () => Promise<Made>;
    readonly change: object;
    /** Whether the thief is the one that it changes. */
    readonly isOwn?: true;
  }[] = [
    { name: "widening its own", make: () => make(MANAGE), change: { permissions: STRONG }, isOwn: true },
    { name: "widening another", make: () => make(["api.*.read_api"]), change: { permissions: STRONG } },
    {
      name: "reviving an expired one",
      make: () => make(STRONG, { expires: 0 }),
      change: { expires: null },
    },
    {
      name: "reviving an expired one while taking most of it away",
      make: () => make(STRONG, { expires: 0 }),
      change: { expires: EXPIRES_MAX_MS, permissions: ["api.*.create_api"] },
    },
    {
      name: "prolonging one by a millisecond",
      make: () => make(STRONG, { expires: 4_000_000_000_000 }),
      change: { expires: 4_000_000_000_001 },
    },
    {
      name: "enabling one",
      make: async () => {
        const made = await make(STRONG);
        await call("updateRootKey", { rootKeyId: made.rootKeyId, enabled: false });
        return made;
      },
      change: { enabled: true, expires: 1 },
    },
  ];

  test.each(WAYS)("root key manager cannot gain permissions by $name", async ({ make: makeVictim, change, isOwn }) => {
    const victim = await makeVictim();
    const thief = isOwn === true ? victim : await make(MANAGE);
    const before = await get(victim.rootKeyId);
    const refused = await call("updateRootKey", { rootKeyId: victim.rootKeyId, ...change }, thief.rootKey);
    expect(kindOf(refused)).toEqual([403, "forbidden"]);
    expect(await get(victim.rootKeyId)).toEqual(before);
  });

  test.each([
    { name: "a live one", change: {} },
    { name: "a disabled one", change: { enabled: false } },
    { name: "an expired one", change: { expires: 0 } },
  ])("root key manager cannot gain permissions by rotating $name", async ({ change }) => {
    const strong = await make(STRONG);
    await call("updateRootKey", { rootKeyId: strong.rootKeyId, ...change });
    const thief = await make(MANAGE);
    for (const body of [{ overlap: 0 }, { overlap: 90 * DAY_MS }, { overlap: 0, expires: null }]) {
      const refused = await call("rotateRootKey", { rootKeyId: strong.rootKeyId, ...body }, thief.rootKey);
      expect(kindOf(refused)).toEqual([403, "forbidden"]);
      expect(JSON.stringify(refused.body)).not.toMatch(/postern_/);
    }
    expect(await get(strong.rootKeyId)).not.toHaveProperty("successorId");
  });

  test("root key manager that removes permissions from a stronger key and rotates it gets only the remaining permissions", async () => {
    const strong = await make(STRONG);
    const thief = await make([...MANAGE, "api.*.create_api"]);
    const narrowed = { rootKeyId: strong.rootKeyId, permissions: ["api.*.create_api"] };
    expect((await call("updateRootKey", narrowed, thief.rootKey)).status).toBe(200);
    const { data } = (await call("rotateRootKey", { rootKeyId: strong.rootKeyId, overlap: 0 }, thief.rootKey)).body;
    expect((await get(data.rootKeyId)).permissions).toEqual(["api.*.create_api"]);
  });

  test.each([
    "api.*.delete_api",
    "apis.*.delete_api",
    "api.api_any.delete_api",
    "installation.x.create_workspace",
    "installation.*.read_installation",
    "workspace.ws_other.read_audit",
  ])("root key manager cannot gain permissions by spelling them differently: %s", async (tuple) => {
    const { rootKey } = await make([...MANAGE, "api.api_any.read_api", "api.*.create_api"]);
    const refused = await call("createRootKey", { name: "thief", permissions: [tuple] }, rootKey);
    expect(kindOf(refused)).toEqual([403, "forbidden"]);
  });

  test.each([
    "*",
    "*.*.*",
    "api.*.*",
    "api.%.read_api",
    "api..read_api",
    "api.*.read_api ",
    "API.*.read_api",
    "api.*.\0",
  ])("root key manager cannot gain permissions by a pattern: %j", async (tuple) => {
    const refused = await call("createRootKey", { name: "thief", permissions: [tuple] });
    expect(kindOf(refused)).toEqual([400, "invalid_input"]);
  });

  test("root key manager with permission for one id can pass on only that id", async () => {
    const { rootKey } = await make([...MANAGE, "api.api_one.read_key"]);
    const give = (tuple: string) => call("createRootKey", { name: "given", permissions: [tuple] }, rootKey);
    expect((await give("api.api_one.read_key")).status).toBe(200);
    for (const tuple of ["api.*.read_key", "api.api_two.read_key", "api.api_one.update_key"]) {
      expect(kindOf(await give(tuple))).toEqual([403, "forbidden"]);
    }
  });
});

describe("expiry", () => {
  test("root key without an expiry still has no expiry after its successor is revoked", async () => {
    const { rootKeyId } = await make(["api.*.create_api"]);
    const first = (await call("rotateRootKey", { rootKeyId, overlap: 0 })).body.data;
    await call("deleteRootKey", { rootKeyId: first.rootKeyId });
    const second = (await call("rotateRootKey", { rootKeyId, overlap: 0 })).body.data;
    expect(second).not.toHaveProperty("expires");
    api.advance(60_000);
    expect(await works(second.rootKey)).toBe(200);
    api.advance(-60_000);
  });

  test("root key with an expiry regains its expiry after its successor is revoked", async () => {
    const { rootKeyId } = await make(["api.*.create_api"], { expires: Date.now() + 30 * DAY_MS });
    const first = (await call("rotateRootKey", { rootKeyId, overlap: DAY_MS })).body.data;
    await call("deleteRootKey", { rootKeyId: first.rootKeyId });
    const second = (await call("rotateRootKey", { rootKeyId, overlap: 0 })).body.data;
    expect(second.expires - Date.now()).toBeGreaterThan(30 * DAY_MS - 60_000);
    expect(second.expires - Date.now()).toBeLessThanOrEqual(30 * DAY_MS);
  });

  test("root key expiry is limited to the maximum", async () => {
    const { rootKeyId } = await make(["api.*.create_api"], { expires: EXPIRES_MAX_MS });
    await api.deps.db.query("update root_keys set created_at = created_at - $2 where id = $1", [rootKeyId, DAY_MS]);
    const { data } = (await call("rotateRootKey", { rootKeyId, overlap: 0 })).body;
    expect(data.expires).toBe(EXPIRES_MAX_MS);
    const same = { rootKeyId: data.rootKeyId, expires: data.expires, enabled: true };
    expect((await call("updateRootKey", same)).body.data.revision).toBe(1);
  });

  test.each([-1, EXPIRES_MAX_MS + 1, 1.5, Number.MAX_SAFE_INTEGER, "tomorrow"])(
    "root key expiry %j is rejected",
    async (expires) => {
      const { rootKeyId } = await make(["api.*.create_api"]);
      for (const [path, body] of [
        ["createRootKey", { name: "none", permissions: ["api.*.create_api"], expires }],
        ["updateRootKey", { rootKeyId, expires }],
        ["rotateRootKey", { rootKeyId, overlap: 0, expires }],
      ] as const) {
        expect(kindOf(await call(path, body))).toEqual([400, "invalid_input"]);
      }
    },
  );
});

describe("concurrent changes", () => {
  test("concurrent rotation and revocation of a root key are atomic", async () => {
    for (let i = 0; i < 8; i++) {
      const { rootKeyId, rootKey } = await make(["api.*.create_api"]);
      const rotate = () => call("rotateRootKey", { rootKeyId, overlap: DAY_MS });
      const revoke = () => call("deleteRootKey", { rootKeyId });
      const [rotated, revoked] =
        i % 2 === 0 ? await Promise.all([rotate(), revoke()]) : (await Promise.all([revoke(), rotate()])).toReversed();
      expect(revoked?.status).toBe(200);
      expect([200, 404]).toContain(rotated?.status);
      expect(await works(rootKey)).toBe(401);
      const { rows } = await api.deps.db.query("select id from root_keys where predecessor_id = $1", [rootKeyId]);
      expect(rows.map(({ id }) => id)).toEqual(rotated?.status === 200 ? [rotated.body.data.rootKeyId] : []);
      if (rotated?.status === 200) expect(await works(rotated.body.data.rootKey)).toBe(200);
    }
  });

  test("only one of ten concurrent root key rotations succeeds, but all concurrent updates apply", async () => {
    const { rootKeyId } = await make(["api.*.create_api"]);
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        i % 2 === 0
          ? call("rotateRootKey", { rootKeyId, overlap: DAY_MS })
          : call("updateRootKey", { rootKeyId, name: `renamed ${i}` }),
      ),
    );
    const statuses = replies.map(({ status }) => status);
    expect(statuses.filter((status) => status === 409)).toHaveLength(9);
    expect(statuses.filter((status) => status === 200)).toHaveLength(11);
    const after = await get(rootKeyId);
    expect(after.revision).toBe(12);
    const { rows } = await api.deps.db.query("select id from root_keys where predecessor_id = $1", [rootKeyId]);
    expect(rows).toEqual([{ id: after.successorId }]);
  });

  test("root key that rotates itself in 20 concurrent calls is replaced only once", async () => {
    const own = await make([...MANAGE, "api.*.create_api"]);
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => call("rotateRootKey", { rootKeyId: own.rootKeyId, overlap: 0 }, own.rootKey)),
    );
    const made = replies.filter(({ status }) => status === 200);
    expect(made).toHaveLength(1);
    for (const reply of replies) expect([200, 401, 409]).toContain(reply.status);
    api.advance(1);
    expect(await works(own.rootKey)).toBe(401);
    expect(await works(made[0]?.body.data.rootKey)).toBe(200);
  });
});

test("audit entries of root keys show the outcome with limited detail", async () => {
  const { rootKeyId } = await make(["api.*.create_api"]);
  const { predecessorExpiresAt } = (await call("rotateRootKey", { rootKeyId, overlap: DAY_MS })).body.data;
  const many = Array.from({ length: 1000 }, (_, i) => `api.${"a".repeat(240)}${i}.read_key`);
  expect((await call("updateRootKey", { rootKeyId, permissions: many })).status).toBe(200);
  const rows = (await call("listAudit", { targetId: rootKeyId, event: "rootKey.update" })).body.data;
  const ofRotation = rows.find(
    ({ after }: { after?: { expiresAt?: number } }) => after?.expiresAt === predecessorExpiresAt,
  );
  expect(ofRotation?.before).toMatchObject({ expiresAt: null });
  for (const row of rows) expect(JSON.stringify(row).length).toBeLessThan(20_480);
});

test("root key with all permissions of the installation can grant each of them", async () => {
  const whole = await api.makeWorkspace(ALL_GRANTS);
  const { status } = await call("createRootKey", { name: "all", permissions: ALL_GRANTS }, whole.rootKey);
  expect(status).toBe(200);
});
