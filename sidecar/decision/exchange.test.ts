import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { UsageEvent } from "../../edge/events/contract.ts";
import {
  API,
  aPolicy,
  aRule,
  call,
  kindOf,
  openGate,
  Records,
  type TestGate,
  WORKSPACE,
  waitFor,
  withKey,
} from "../../test/harness/gate.ts";

const HOUR = 3_600_000;
const perKey = (name: string, limit: number, cost = 1) => ({
  scope: { kind: "name", name } as const,
  identifier: "key" as const,
  limit,
  durationMs: HOUR,
  cost,
  accuracy: "strict" as const,
});
const perIdentity = (namespaceId: string, limit: number) => ({
  ...perKey("", limit),
  scope: { kind: "namespace", namespaceId } as const,
  identifier: "identity" as const,
});

let gate: TestGate;
beforeAll(async () => {
  gate = await openGate({
    policy: {
      rules: [
        aRule({ methods: ["GET"], path: { prefix: "/healthz" }, access: "Anonymous" }),
        aRule({ methods: ["POST", "PUT"], path: { prefix: "/orders" }, permissions: "orders.write OR orders.admin" }),
        aRule({ name: "limited", path: { prefix: "/limited" }, ratelimits: [perKey("writes", 2)] }),
        aRule({ path: { prefix: "/closed" }, ratelimits: [perKey("never", 0)] }),
        aRule({ path: { prefix: "/shared" }, ratelimits: [perIdentity("rlns_public", 3)] }),
        aRule({ path: { prefix: "/dear" }, creditCost: 5 }),
        aRule({ path: { prefix: "/free" }, creditCost: 0 }),
      ],
    },
  });
});
afterAll(() => gate.close());
beforeEach(() => {
  gate.app.seen.length = 0;
});

describe("a valid key", () => {
  test("gate forwards identity headers and removes the API key for a valid key", async () => {
    await gate.records.putIdentity({ id: "id_1", externalId: "cust omer", ratelimits: [] });
    await gate.records.putRole({ id: "role_1", name: "editor", permissions: ["orders.write"] });
    const key = await gate.records.putKey({
      keyId: "key_full",
      identityId: "id_1",
      roleIds: ["role_1"],
      permissions: ["orders.read"],
    });
    const response = await call(gate.port, { path: "/a?b=c", ...withKey(key, { "X-Postern-Key-Id": "forged" }) });
    expect(response).toMatchObject({ status: 200, body: "ok" });
    expect(response.headers["x-request-id"]).toMatch(/^req_[A-Za-z0-9]{16}$/);
    const [seen] = gate.app.seen;
    expect(seen?.url).toBe("/a?b=c");
    expect(seen?.headers).toMatchObject({
      "x-postern-key-id": "key_full",
      "x-postern-workspace-id": WORKSPACE,
      "x-postern-api-id": API,
      "x-postern-identity-id": "id_1",
      "x-postern-external-id": "cust%20omer",
      "x-postern-roles": "editor",
      "x-postern-permissions": "orders.read orders.write",
      "x-postern-request-id": response.headers["x-request-id"],
    });
    expect(JSON.stringify(seen?.rawHeaders)).not.toContain(key);
  });

  test("gate sends no RateLimit headers when no limit applies", async () => {
    const key = await gate.records.putKey();
    const { headers } = await call(gate.port, withKey(key));
    expect(Object.keys(headers).filter((name) => name.startsWith("ratelimit"))).toEqual([]);
  });

  test("gate forwards the request body to the app", async () => {
    const key = await gate.records.putKey({ permissions: ["orders.admin"] });
    await call(gate.port, { method: "POST", path: "/orders", body: "hello", ...withKey(key) });
    expect(gate.app.seen[0]).toMatchObject({ method: "POST", body: "hello" });
  });
});

describe("status of each verification code", () => {
  test("gate responds 401 with a challenge when a request has no key", async () => {
    const response = await call(gate.port);
    expect(response.status).toBe(401);
    expect(kindOf(response)).toBe("unauthorized");
    expect(response.headers["www-authenticate"]).toBe('Bearer realm="postern"');
    expect(JSON.parse(response.body)).toEqual({
      meta: { requestId: response.headers["x-request-id"] },
      error: {
        title: "Unauthorized",
        detail: expect.any(String),
        status: 401,
        type: "https://docs.test/errors/unauthorized",
      },
    });
  });

  test.each([
    { name: "an unknown key: 401", put: async () => "nobody", status: 401, kind: "unauthorized" },
    {
      name: "a disabled key: 401",
      put: () => gate.records.putKey({ enabled: false }),
      status: 401,
      kind: "unauthorized",
    },
    {
      name: "an expired key: 401",
      put: () => gate.records.putKey({ expiresMs: 1 }),
      status: 401,
      kind: "unauthorized",
    },
    {
      name: "another API's key: 401, as if there were none",
      put: async () => {
        await gate.records.putApi({ id: "api_other" });
        return gate.records.putKey({ apiId: "api_other" });
      },
      status: 401,
      kind: "unauthorized",
      detail: "The API key does not exist.",
    },
    {
      name: "another workspace's key: 401",
      put: async () => {
        const others = new Records(gate.edge, "ws_other");
        await others.begin();
        const key = await others.putKey();
        await others.complete();
        return key;
      },
      status: 401,
      kind: "unauthorized",
    },
    {
      name: "a key without the permission: 403",
      put: () => gate.records.putKey({ permissions: ["orders.read"] }),
      status: 403,
      kind: "forbidden",
    },
    {
      name: "a deleted key: 401",
      put: async () => {
        const key = await gate.records.putKey();
        await gate.records.deleteKey(key);
        return key;
      },
      status: 401,
      kind: "unauthorized",
    },
  ])("gate responds with the expected status to $name", async ({ put, status, kind, ...rest }) => {
    const response = await call(gate.port, { method: "POST", path: "/orders", ...withKey(await put()) });
    expect(response.status).toBe(status);
    expect(kindOf(response)).toBe(kind);
    if ("detail" in rest) expect(JSON.parse(response.body).error.detail).toBe(rest.detail);
    if (status === 401) expect(response.headers["www-authenticate"]).toContain("invalid_token");
    expect(gate.app.seen).toEqual([]);
  });

  test("gate responds 401 to a root key because it is not an API key", async () => {
    const response = await call(gate.port, withKey("postern_root_3Yd8sGkWq7TnVb2LxZcPfR"));
    expect(response.status).toBe(401);
  });

  test("gate responds 403 to a key of a disabled workspace", async () => {
    const key = await gate.records.putKey();
    await gate.records.putWorkspace(false);
    const refused = await call(gate.port, withKey(key));
    await gate.records.putWorkspace(true);
    expect(refused.status).toBe(403);
    expect((await call(gate.port, withKey(key))).status).toBe(200);
  });

  test("gate responds 429 with Retry-After and RateLimit headers above the limit", async () => {
    const key = await gate.records.putKey();
    const ask = () => call(gate.port, { path: "/limited", ...withKey(key) });
    const responses = [await ask(), await ask(), await ask()];
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(responses.map(({ headers }) => [headers["ratelimit-limit"], headers["ratelimit-remaining"]])).toEqual([
      ["2", "1"],
      ["2", "0"],
      ["2", "0"],
    ]);
    for (const { headers } of responses) expect(headers["ratelimit-policy"]).toMatch(/^"limited";q=2;w=\d+$/);
    const refused = responses[2];
    expect(kindOf({ body: refused?.body ?? "" })).toBe("rate_limited");
    for (const name of ["retry-after", "ratelimit-reset"] as const) {
      const seconds = Number(refused?.headers[name]);
      expect(Number.isInteger(seconds) && seconds >= 1 && seconds <= 2 * 3600).toBe(true);
    }
  });

  test("gate responds 429 with Retry-After for the next window when the limit is 0", async () => {
    const refused = await call(gate.port, { path: "/closed", ...withKey(await gate.records.putKey()) });
    expect(refused.status).toBe(429);
    expect(refused.headers["retry-after"]).toBe(refused.headers["ratelimit-reset"]);
    expect(refused.headers["ratelimit-policy"]).toBeUndefined();
  });

  test("gate responds 429 with Retry-After and spends no credits when credits are insufficient", async () => {
    const key = await gate.records.putKey({ keyId: "key_poor", limited: true });
    const ref = { workspaceId: WORKSPACE, keyId: "key_poor" };
    await gate.edge.credits.load([{ ref: ref, counter: { rev: 1, granted: 7, spent: 0 } }]);
    const ask = (path: string) => call(gate.port, { path, ...withKey(key) });
    const [first, second] = [await ask("/dear"), await ask("/dear")];
    expect([first.status, second.status]).toEqual([200, 429]);
    expect(kindOf(second)).toBe("usage_exceeded");
    // Credits refill only after midnight UTC.
    const untilMidnightS = Math.ceil((86_400_000 - (Date.now() % 86_400_000)) / 1000);
    const earlyS = Number(second.headers["retry-after"]) - untilMidnightS;
    expect((earlyS + 86_400) % 86_400).toBeLessThan(30);
    expect(await gate.edge.credits.read([ref])).toMatchObject([{ spent: 5 }]);
    expect((await ask("/free")).status).toBe(200);
    expect(await gate.edge.credits.read([ref])).toMatchObject([{ spent: 5 }]);
  });
});

describe("limits and credits", () => {
  test("gate charges key limits and rule limits atomically", async () => {
    const key = await gate.records.putKey({
      ratelimits: [{ id: "rl_1", name: "all", limit: 1, durationMs: HOUR, autoApply: true }],
    });
    const ask = (path: string) => call(gate.port, { path, ...withKey(key) });
    expect((await ask("/")).status).toBe(200);
    expect((await ask("/limited")).status).toBe(429);
    // The rejection consumed no part of the rule's limit.
    await gate.records.putKey({ ratelimits: [] }, key);
    expect((await ask("/limited")).headers["ratelimit-remaining"]).toBe("1");
  });

  test("keys of one identity share an identity limit, and an override replaces the limit", async () => {
    await gate.records.putIdentity({ id: "id_shared", externalId: "premium", ratelimits: [] });
    const keys = [
      await gate.records.putKey({ identityId: "id_shared" }),
      await gate.records.putKey({ identityId: "id_shared" }),
    ];
    const ask = async (key = "") =>
      (await call(gate.port, { path: "/shared", ...withKey(key) })).headers["ratelimit-remaining"];
    expect([await ask(keys[0]), await ask(keys[1])]).toEqual(["2", "1"]);
    await gate.records.putOverride("rlns_public", {
      id: "rlor_1",
      identifier: "premium",
      limit: 100,
      durationMs: HOUR,
      async: false,
    });
    expect(await ask(keys[0])).toBe("97");
  });

  test("gate loads missing credits from the database while the request waits", async () => {
    const key = await gate.records.putKey({ keyId: "key_late", limited: true });
    const asked = call(gate.port, withKey(key));
    const [ref] = await waitForLoadRequest(gate);
    expect(ref).toEqual({ workspaceId: WORKSPACE, keyId: "key_late" });
    await gate.edge.credits.load([
      { ref: { workspaceId: WORKSPACE, keyId: "key_late" }, counter: { rev: 1, granted: 3, spent: 0 } },
    ]);
    expect((await asked).status).toBe(200);
    expect(await gate.edge.credits.read([{ workspaceId: WORKSPACE, keyId: "key_late" }])).toMatchObject([{ spent: 1 }]);
  });

  test("gate responds 503 when credits are unknown and the policy does not admit such requests", async () => {
    const key = await gate.records.putKey({ keyId: "key_unloaded", limited: true });
    const refused = await call(gate.port, withKey(key));
    expect([refused.status, refused.headers["retry-after"], kindOf(refused)]).toEqual([
      503,
      "1",
      "verification_unavailable",
    ]);
  });
});

const waitForLoadRequest = ({ edge }: TestGate) =>
  waitFor("a request to load credits", async () => {
    const { items } = await edge.credits.takeLoadRequests(WORKSPACE, 10);
    return items.length > 0 && items;
  });

describe("Anonymous rules", () => {
  test("an Anonymous rule admits requests without a key and removes identity headers and credentials", async () => {
    const headers = { "X-Postern-Key-Id": "forged", X_Postern_Roles: "admin", "X-API-Key": "k1", Cookie: "a=1" };
    const response = await call(gate.port, { path: "/healthz/live", headers });
    expect(response.status).toBe(200);
    const names = Object.keys(gate.app.seen[0]?.headers ?? {});
    expect(names.filter((name) => /postern|api-key/.test(name))).toEqual(["x-postern-request-id"]);
    expect(names).toContain("cookie");
  });

  test("an Anonymous rule applies only to its own paths and methods", async () => {
    expect((await call(gate.port, { path: "/healthz-admin" })).status).toBe(401);
    expect((await call(gate.port, { path: "/healthz", method: "POST" })).status).toBe(401);
  });
});

describe("events", () => {
  const events: UsageEvent[] = [];
  const take = async () => {
    await gate.edge.sink.flush();
    await gate.edge.events.take(WORKSPACE, async (taken) => void events.push(...taken));
    return events.splice(0);
  };
  afterEach(take);

  test("gate emits one event per decision about a known key, without the key itself", async () => {
    await take();
    const good = await gate.records.putKey({ keyId: "key_evented", permissions: ["orders.write"] });
    const bad = await gate.records.putKey({ keyId: "key_disabled", enabled: false });
    await call(gate.port, { method: "POST", path: "/orders", ...withKey(good) });
    await call(gate.port, withKey(bad));
    await call(gate.port, withKey("unknown"));
    await call(gate.port);
    const taken = await take();
    expect(taken.map((event) => (event.type === "verification" ? [event.keyId, event.outcome] : []))).toEqual([
      ["key_evented", "VALID"],
      ["key_disabled", "DISABLED"],
    ]);
    expect(taken[0]).toMatchObject({ source: "sidecar", region: "test", apiId: API, spentCredits: 0, tags: [] });
    expect(JSON.stringify(taken)).not.toContain(good);
  });
});

describe("Audit mode", () => {
  let audited: TestGate;
  beforeAll(async () => {
    const rules = [aRule({ path: { prefix: "/closed" }, ratelimits: [perKey("once", 1)] })];
    audited = await openGate({ policy: { mode: "Audit", rules } });
  });
  afterAll(() => audited.close());

  test.each([
    { name: "no key", headers: async () => ({}), path: "/" },
    { name: "an unknown key", headers: async () => withKey("unknown").headers, path: "/" },
    {
      name: "a disabled key",
      headers: async () => withKey(await audited.records.putKey({ enabled: false })).headers,
      path: "/",
    },
    { name: "a path that is refused", headers: async () => ({}), path: "//double" },
  ])("Audit mode admits $name without sending identity headers", async ({ headers, path }) => {
    audited.app.seen.length = 0;
    const sent = { ...(await headers()), "X-Postern-Key-Id": "forged" };
    expect((await call(audited.port, { path, headers: sent })).status).toBe(200);
    expect(audited.app.seen[0]).toMatchObject({ url: path });
    expect(Object.keys(audited.app.seen[0]?.headers ?? {}).filter((name) => name.startsWith("x-postern"))).toEqual([
      "x-postern-request-id",
    ]);
    expect(audited.app.seen[0]?.headers.authorization).toBeUndefined();
  });

  test("Audit mode sends identity headers for a valid key and charges no credits or limits", async () => {
    audited.app.seen.length = 0;
    const key = await audited.records.putKey({ keyId: "key_audited", limited: true });
    for (let i = 0; i < 3; i++)
      expect((await call(audited.port, { path: "/closed", ...withKey(key) })).status).toBe(200);
    expect(audited.app.seen.map(({ headers }) => headers["x-postern-key-id"])).toEqual(Array(3).fill("key_audited"));
  });

  test("Audit mode removes the key from the query, even for a rejected path", async () => {
    const byQuery = await openGate({ policy: { mode: "Audit", credentials: [{ in: "query", name: "api_key" }] } });
    await call(byQuery.port, { path: "//double?a=b&api_key=secret&c=?" });
    expect(byQuery.app.seen.map(({ url }) => url)).toEqual(["//double?a=b&c=?"]);
    await byQuery.close();
  });

  test("Audit mode counts the requests that Enforce mode would reject", async () => {
    await call(audited.port);
    const metrics = await audited.metrics();
    expect(metrics).toMatch(/postern_sidecar_requests_total\{code="MISSING_KEY"\} [1-9]/);
    expect(metrics).toMatch(/postern_sidecar_audited_refusals_total [1-9]/);
  });
});

describe("a policy with other settings", () => {
  test("gate reads a credential from the query only if configured, and removes it", async () => {
    const other = await openGate({ policy: { credentials: [{ in: "query", name: "api_key" }] } });
    try {
      const key = await other.records.putKey();
      expect((await call(other.port, { path: `/a?x=1&api_key=${key}` })).status).toBe(200);
      expect(other.app.seen[0]?.url).toBe("/a?x=1");
      expect((await call(other.port, { path: `/a?api_key=${key}&api_key=${key}` })).status).toBe(400);
      expect((await call(other.port, withKey(key))).status).toBe(401);
      expect((await call(gate.port, { path: `/a?api_key=${key}` })).status).toBe(401);
    } finally {
      await other.close();
    }
  });

  test("an API address allow list applies when the policy defines how to find client addresses", async () => {
    const other = await openGate({
      policy: { clientAddress: { from: "forwardedFor", trustedProxies: ["127.0.0.1"] } },
    });
    try {
      await other.records.putApi({ ipAllowList: ["203.0.113.9", "2001:db8::/32"] });
      const key = await other.records.putKey();
      const from = async (address: string) =>
        (await call(other.port, withKey(key, { "X-Forwarded-For": address }))).status;
      expect([await from("203.0.113.9"), await from("203.0.113.9, 198.51.100.1")]).toEqual([200, 403]);
      expect([await from("2001:db8::7"), await from("2001:db9::7")]).toEqual([200, 403]);
      await other.records.putPolicy(aPolicy());
      await other.caughtUp();
      expect(await from("198.51.100.1")).toBe(200);
    } finally {
      await other.close();
    }
  });
});
