import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CountersUnavailable } from "../../../edge/counters/contract.ts";
import { createMemoryEdge } from "../../../edge/open.ts";
import { createCreditService } from "../../credits/postgres-credits.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";
import { makeResources, type Resources } from "../../test/resources.ts";

const HOUR_MS = 3_600_000;

let t: TestApp;
let resources: Resources;
beforeAll(async () => {
  t = await buildTestApp();
  resources = makeResources(t.deps.db, { workspaceId: t.workspace.id, ask: (path, body) => t.data(path, body) });
});
afterAll(() => t.close());

const hashOf = (key: string) => createHash("sha256").update(key).digest("base64");
const explain = (body: object) => t.data("admin.explainVerification", body);
interface StepOut {
  readonly step: string;
  readonly result: string;
  readonly decisive: boolean;
  readonly detail: string;
}
const deciding = ({ steps }: { steps: StepOut[] }) => steps.filter(({ decisive }) => decisive).map(({ step }) => step);

/** A key that passes everything, and how each case makes one step refuse it. */
const CASES: readonly {
  readonly name: string;
  readonly make?: Record<string, unknown>;
  readonly ask?: Record<string, unknown>;
  readonly change?: (key: { keyId: string; apiId: string }) => Promise<unknown>;
  readonly code: string;
  readonly step?: string;
}[] = [
  { name: "a good key", code: "VALID" },
  { name: "a disabled key", make: { enabled: false }, code: "DISABLED", step: "enabled" },
  {
    name: "an expired key",
    change: ({ keyId }) => t.deps.db.query("update keys set expires_at = 5 where id = $1", [keyId]),
    code: "EXPIRED",
    step: "expiry",
  },
  {
    name: "an address that is not on the list",
    change: ({ apiId }) => t.deps.db.query("update apis set ip_allow_list = '{192.0.2.1}' where id = $1", [apiId]),
    ask: { clientIp: "192.0.2.2" },
    code: "FORBIDDEN",
    step: "address",
  },
  {
    name: "a permission that is missing",
    ask: { permissions: "a.b OR c.d" },
    code: "INSUFFICIENT_PERMISSIONS",
    step: "permissions",
  },
  {
    name: "a limit that is used up",
    make: { ratelimits: [{ name: "one", limit: 1, duration: HOUR_MS, autoApply: true }] },
    ask: { ratelimits: [{ name: "one", cost: 2 }] },
    code: "RATE_LIMITED",
    step: "limits",
  },
  {
    name: "too few credits",
    make: { credits: { remaining: 3 } },
    ask: { credits: { cost: 4 } },
    code: "USAGE_EXCEEDED",
    step: "credits",
  },
];

describe.each(CASES)("$name", ({ make = {}, ask = {}, change, code, step }) => {
  test("admin explanation agrees with keys.verifyKey and marks the decisive step", async () => {
    const key = await resources.key(make);
    await change?.(key);
    t.deps.projection.forgetAll();
    const explained = await explain({ keyId: key.keyId, ...ask });
    expect(explained.code).toBe(code);
    expect(deciding(explained)).toEqual(step === undefined ? [] : [step]);
    // The client's address of verifyKey is that of the connection, so only codes that do not depend on it are compared.
    const { clientIp, ...body } = ask;
    const verified = await t.data("keys.verifyKey", { key: key.key, ...body });
    expect(verified.code).toBe(code);
  });
});

test("admin explanation counts, spends and records nothing", async () => {
  const { keyId, key } = await resources.key({
    credits: { remaining: 2 },
    ratelimits: [{ name: "two", limit: 2, duration: HOUR_MS, autoApply: true }],
  });
  const events: string[] = [];
  const { addLine } = t.edge.sink;
  t.edge.sink.addLine = (workspaceId, line) => {
    events.push(line);
    return addLine.call(t.edge.sink, workspaceId, line);
  };
  for (let i = 0; i < 5; i++) {
    const { code, limits, credits } = await explain({ keyHash: hashOf(key) });
    expect({ code, used: limits[0].used, remaining: credits.remaining }).toEqual({
      code: "VALID",
      used: 0,
      remaining: 2,
    });
  }
  t.edge.sink.addLine = addLine;
  expect(events).toEqual([]);
  expect(await t.audit()).not.toContainEqual(expect.objectContaining({ event: expect.stringContaining("explain") }));
  const verified = await t.data("keys.verifyKey", { key });
  expect(verified).toMatchObject({ code: "VALID", credits: 1, ratelimits: [{ remaining: 1 }] });
  const { limits, credits } = await explain({ keyId });
  expect([limits[0].used, limits[0].passed, credits.remaining]).toEqual([1, true, 1]);
});

test("admin explanation includes steps after the decisive one", async () => {
  const { keyId } = await resources.key({
    enabled: false,
    ratelimits: [{ name: "one", limit: 1, duration: HOUR_MS, autoApply: true }],
  });
  const { steps, code } = await explain({ keyId, permissions: "a.b", ratelimits: [{ name: "one", cost: 2 }] });
  expect(code).toBe("DISABLED");
  expect(steps.filter(({ result }: StepOut) => result === "refused").map(({ step }: StepOut) => step)).toEqual([
    "enabled",
    "permissions",
    "limits",
  ]);
});

test("admin explanation shows the source of each permission, and the missing permissions", async () => {
  const direct = await resources.permission();
  const through = await resources.permission();
  const role = await resources.role([through.slug]);
  const { keyId } = await resources.key({ permissions: [direct.slug], roles: [role.name] });
  const { permissions } = await explain({ keyId, permissions: `${direct.slug} AND ${through.slug} AND other.one` });
  expect(permissions.needed).toEqual([
    { slug: direct.slug, isHeld: true, by: [{ slug: direct.slug }] },
    { slug: through.slug, isHeld: true, by: [{ slug: through.slug, role: role.name }] },
    { slug: "other.one", isHeld: false, by: [] },
  ]);
  expect(permissions.held).toHaveLength(2);
  expect(permissions.held).toContainEqual({ slug: through.slug, isDirect: false, roles: [role.name] });
  expect(permissions.held).toContainEqual({ slug: direct.slug, isDirect: true, roles: [] });
});

test("admin explanation of a gate request uses the matching rule and its status", async () => {
  const { keyId, apiId } = await resources.key();
  const other = await resources.key();
  const { policyId } = await resources.policy(apiId, {
    rules: [
      { match: { path: { prefix: "/open" } }, access: "Anonymous" },
      { match: { path: { prefix: "/orders" } }, permissions: "orders.write" },
    ],
  });
  const at = (path: string, of = keyId) => explain({ keyId: of, policyId, path });
  expect(await at("/orders/1?a=b")).toMatchObject({
    code: "INSUFFICIENT_PERMISSIONS",
    status: 403,
    rule: 1,
    mode: "Enforce",
  });
  expect(await at("/else")).toMatchObject({ code: "VALID", status: 200, rule: -1 });
  expect(await at("/open")).toMatchObject({ code: "ANONYMOUS", rule: 0 });
  expect(await at("/a//b")).toMatchObject({ code: "MALFORMED", status: 400 });
  const foreign = await at("/else", other.keyId);
  expect(foreign).toMatchObject({ code: "NOT_FOUND", status: 401 });
  expect(foreign.steps.map(({ step }: StepOut) => step)).toEqual(["path", "rule", "stale", "found"]);
  expect(foreign.steps.at(-1).detail).toContain("a different API");
  expect(foreign).not.toHaveProperty("keyId");
});

test("admin explanation shows the state of the key's record in Postgres and in gates", async () => {
  const { keyId, key } = await resources.key();
  const { stores } = await explain({ keyId });
  // No relay runs here, so the gates have nothing.
  expect(stores).toMatchObject({ postgres: { state: "found" }, isSame: false });
  expect(stores.gates.state).not.toBe("found");
  expect(stores.stalenessMs).toBeGreaterThanOrEqual(0);
  await t.data("keys.deleteKey", { keyId, permanent: true });
  const gone = await explain({ keyHash: hashOf(key) });
  expect(gone).toMatchObject({ code: "NOT_FOUND", stores: { postgres: { state: "gone" } } });
});

test.each([
  { name: "neither a key nor a hash", body: {}, status: 400 },
  { name: "both", body: { keyId: "key_1", keyHash: hashOf("a") }, status: 400 },
  { name: "the secret itself", body: { keyHash: "prod_5Kd3NBUAdUnhyzen" }, status: 400 },
  { name: "a query that does not parse", body: { permissions: "a AND" }, status: 400, ofKey: true },
  { name: "a limit that is not attached", body: { ratelimits: [{ name: "none" }] }, status: 412, ofKey: true },
])("admin explanation rejects $name", async ({ body, status, ofKey }) => {
  const named = ofKey === true ? { keyId: (await resources.key()).keyId } : {};
  const reply = await t.call("admin.explainVerification", { ...named, ...body });
  expect(reply.status, JSON.stringify(reply.body)).toBe(status);
});

describe("unavailable counters", () => {
  let away: TestApp;
  let own: Resources;
  beforeAll(async () => {
    away = await buildTestApp({
      deps: ({ db, log }) => {
        const gone = () => Promise.reject(new CountersUnavailable("away"));
        const edge = createMemoryEdge();
        const store = Object.assign(Object.create(edge.credits), { read: gone });
        return { peekLimits: gone, credits: createCreditService({ db, store, nowMs: Date.now, log }) };
      },
    });
    const ask = (path: string, body: unknown) => away.data(path, body);
    own = makeResources(away.deps.db, { workspaceId: away.workspace.id, ask });
  });
  afterAll(() => away.close());
  const limit = { name: "some", limit: 5, duration: HOUR_MS, autoApply: true };
  const shown = ({ steps }: { steps: StepOut[] }, name: string) => steps.find(({ step }) => step === name);

  test("admin explanation of an API call without Redis uses local counts", async () => {
    const { keyId } = await own.key({ ratelimits: [limit] });
    const explained = await away.data("admin.explainVerification", { keyId });
    expect(explained).toMatchObject({ code: "VALID", allowed: true, status: 200, limits: [] });
    expect(shown(explained, "limits")).toMatchObject({ result: "skipped", decisive: false });
  });

  test.each([
    { onCounterFailure: "Local" as const, code: "VALID", status: 200 },
    { onCounterFailure: "Allow" as const, code: "VALID", status: 200 },
    { onCounterFailure: "Deny" as const, code: "UNKNOWN", status: 503 },
  ])(
    "admin explanation of a gate without Redis follows onCounterFailure: $onCounterFailure",
    async ({ onCounterFailure, code, status }) => {
      const { keyId, apiId } = await own.key({ ratelimits: [limit] });
      const { policyId } = await own.policy(apiId, { onCounterFailure });
      const explained = await away.data("admin.explainVerification", { keyId, policyId, path: "/" });
      expect(explained).toMatchObject({ code, status, allowed: status === 200 });
      expect(shown(explained, "limits")?.detail).toContain(`onCounterFailure is ${onCounterFailure}`);
    },
  );

  test("admin explanation distinguishes stored credits from the credits that gates spend", async () => {
    const { keyId } = await own.key({ credits: { remaining: 5 } });
    const explained = await away.data("admin.explainVerification", { keyId });
    expect(explained).toMatchObject({ code: "UNKNOWN", status: 503, allowed: false });
    expect(shown(explained, "credits")).toMatchObject({ result: "skipped", decisive: true });
  });
});

describe("a request", () => {
  test("request lookup finds verifications, limit checks and changes by request id", async () => {
    const { key, keyId } = await resources.key();
    const verified = await t.call("keys.verifyKey", { key, tags: ["path=/x"] });
    const limited = await t.call("ratelimit.limit", {
      namespace: resources.name("ns"),
      identifier: "somebody",
      limit: 1,
      duration: HOUR_MS,
    });
    await t.ingest();
    const byId = (reply: typeof verified) => t.data("admin.explainRequest", { requestId: reply.body.meta.requestId });
    expect(await byId(verified)).toMatchObject({
      verifications: [{ keyId, outcome: "VALID", source: "api", policyId: "", tags: ["path=/x"] }],
      ratelimits: [],
      changes: [],
    });
    expect(await byId(limited)).toMatchObject({
      verifications: [],
      ratelimits: [{ identifier: "somebody", passed: true, limit: 1, remaining: 0 }],
      changes: [{ event: "ratelimitNamespace.create" }],
    });
  });

  test("request lookup outside the time range finds nothing", async () => {
    const { key } = await resources.key();
    const { body } = await t.call("keys.verifyKey", { key });
    await t.ingest();
    const { requestId } = body.meta;
    const until = Date.now() - HOUR_MS;
    expect((await t.data("admin.explainRequest", { requestId, until })).verifications).toEqual([]);
  });

  test.each([
    { name: "no id", body: { requestId: "req_1' OR '1'='1" } },
    { name: "a range of more than 7 days", body: { requestId: "req_1", since: 1 } },
    { name: "a range that ends before it begins", body: { requestId: "req_1", since: 10, until: 5 } },
  ])("request lookup with $name gets 400", async ({ body }) => {
    expect((await t.call("admin.explainRequest", body)).status).toBe(400);
  });

  test("request lookup of another workspace finds nothing", async () => {
    const { key } = await resources.key();
    const { body } = await t.call("keys.verifyKey", { key });
    await t.ingest();
    const { rootKey } = await t.makeWorkspace();
    const found = await t.data("admin.explainRequest", { requestId: body.meta.requestId }, { rootKey });
    expect(found).toMatchObject({ verifications: [], ratelimits: [], changes: [] });
  });
});

describe("a secret of another workspace", () => {
  test("admin explanation gives the same response for a key of another workspace and for an unknown key", async () => {
    const other = await t.makeWorkspace();
    const theirs = makeResources(t.deps.db, {
      workspaceId: other.id,
      ask: (path, body) => t.data(path, body, { rootKey: other.rootKey }),
    });
    const foreign = await theirs.key({ credits: { remaining: 3 }, permissions: ["docs.read"] });
    const deleted = await theirs.key();
    await theirs.ask("keys.deleteKey", { keyId: deleted.keyId });
    const { policyId } = await resources.policy();
    for (const at of [{}, { policyId, method: "GET", path: "/" }, { permissions: "docs.read", credits: { cost: 1 } }]) {
      const [never, ...others] = await Promise.all(
        ["never", foreign.key, deleted.key, other.rootKey, t.workspace.rootKey].map((secret) =>
          explain({ keyHash: hashOf(secret), ...at }),
        ),
      );
      const shown = (response: object) =>
        JSON.stringify(response).replaceAll(/"(now|ageMs|stalenessMs)":\d+/g, '"$1":0');
      for (const response of others) expect(shown(response)).toEqual(shown(never));
    }
    const byId = await t.call("admin.explainVerification", { keyId: foreign.keyId });
    const byNoId = await t.call("admin.explainVerification", { keyId: "key_never00000000000" });
    expect([byId.status, byId.body.error.detail.replace(foreign.keyId, "…")]).toEqual([
      byNoId.status,
      byNoId.body.error.detail.replace("key_never00000000000", "…"),
    ]);
  });

  test("admin explanation of another workspace's key leaves no trace in the database", async () => {
    const { key, keyId } = await resources.key({
      credits: { remaining: 2, refill: { interval: "daily", amount: 5 } },
      externalId: "traced",
      ratelimits: [{ name: "many", limit: 2, duration: HOUR_MS, autoApply: true }],
    });
    const { namespace } = await resources.override();
    const { policyId } = await resources.policy();
    const rows = async () => {
      const { rows: tables } = await t.deps.db.query<{ table_name: string }>(
        "select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE' order by 1",
      );
      const all: string[] = [];
      for (const { table_name: table } of tables) {
        const { rows } = await t.deps.db.query(`select to_jsonb(one)::text as row from "${table}" one order by 1`);
        all.push(table, ...rows.map(({ row }) => row));
      }
      return all;
    };
    const before = await rows();
    for (const asked of [{ keyId }, { keyHash: hashOf(key) }, { keyHash: hashOf("never") }]) {
      await explain({ ...asked, ratelimits: [{ name: "made-up", limit: 1, duration: HOUR_MS }] });
      await explain({ ...asked, policyId, method: "GET", path: "/" });
    }
    await t.data("admin.explainOverride", { namespace, identifier: "somebody", limit: 3, duration: HOUR_MS });
    await t.ingest();
    expect(await rows()).toEqual(before);
    const counted = await t.data("ratelimit.limit", { namespace, identifier: "somebody", limit: 3, duration: HOUR_MS });
    expect(counted.remaining).toBe(2);
  });
});

test("admin explanation contains neither secrets nor hashes", async () => {
  const { key, keyId } = await resources.key({ credits: { remaining: 2 }, meta: { note: "private words" } });
  const text = JSON.stringify([await explain({ keyId }), await explain({ keyHash: hashOf(key) })]);
  for (const word of [key, hashOf(key), "private words"]) expect(text).not.toContain(word);
});
