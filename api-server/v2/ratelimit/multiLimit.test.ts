import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ConsumeRequest, CountersUnavailable } from "../../../edge/counters/contract.ts";
import type { UsageEvent } from "../../../edge/events/contract.ts";
import { buildTestApp, type CallOptions, type Reply, type TestApp } from "../../test/app.ts";

const HOUR_MS = 3_600_000;

let t: TestApp;
const events: UsageEvent[] = [];
const consumed: ConsumeRequest[] = [];
/** Set by a test: the shared store does not answer. */
let isUnavailable = false;
beforeAll(async () => {
  t = await buildTestApp({
    deps: ({ counters, events: sink }) => ({
      // Seen from outside only; each does what it does.
      events: {
        add: (event) => void events.push(event),
        addLine: (workspaceId, line) => sink.addLine(workspaceId, line),
        flush: () => sink.flush(),
        dropped: () => sink.dropped(),
        close: () => sink.close(),
      },
      counters: {
        close: () => counters.close(),
        consume: (request) => {
          consumed.push(request);
          const isStrict = request.limits.some(({ accuracy }) => accuracy === "strict");
          return isUnavailable && isStrict
            ? Promise.reject(new CountersUnavailable("away"))
            : counters.consume(request);
        },
      },
    }),
  });
});
afterAll(() => t.close());
beforeEach(() => {
  events.length = 0;
  consumed.length = 0;
});

let made = 0;
const unique = (name: string): string => `${name}-${++made}`;
const entry = (of: object): Record<string, unknown> => ({ identifier: "user_1", limit: 3, duration: HOUR_MS, ...of });
const multi = (...entries: object[]) => t.data("ratelimit.multiLimit", entries.map(entry));
const ask = (entries: readonly object[], options?: CallOptions): Promise<Reply> =>
  t.call("ratelimit.multiLimit", entries.map(entry), options);
const kindOf = (reply: Reply): string => reply.body.error.type.split("/").at(-1);
const namespacesLike = (search: string) => t.data("ratelimit.listNamespaces", { search });
/** What is left, looked at without consuming. */
const left = async (of: object): Promise<number> =>
  (await t.data("ratelimit.limit", entry({ ...of, cost: 0 }))).remaining;

describe("all or none", () => {
  test("multiLimit charges all entries if all of them pass, and responds in request order", async () => {
    const [a, b] = [unique("a"), unique("b")];
    expect(await multi({ namespace: b, cost: 2 }, { namespace: a, identifier: "other", limit: 7 })).toEqual({
      passed: true,
      limits: [
        { namespace: b, identifier: "user_1", passed: true, limit: 3, remaining: 1, reset: expect.any(Number) },
        { namespace: a, identifier: "other", passed: true, limit: 7, remaining: 6, reset: expect.any(Number) },
      ],
    });
    expect(await left({ namespace: b })).toBe(1);
  });

  test("multiLimit charges nothing when one entry is denied", async () => {
    const [full, free] = [unique("full"), unique("free")];
    await multi({ namespace: full, cost: 3 });
    for (let i = 0; i < 2; i++) {
      const { passed, limits } = await multi({ namespace: free, cost: 2 }, { namespace: full });
      expect(passed).toBe(false);
      expect(limits).toMatchObject([
        { passed: true, remaining: 3 },
        { passed: false, remaining: 0 },
      ]);
    }
    expect(await left({ namespace: free })).toBe(3);
  });

  test("multiLimit adds up the costs of entries that use the same counter", async () => {
    const namespace = unique("same");
    const { namespaceId } = await t.data("ratelimit.createNamespace", { name: namespace });
    const refused = await multi({ namespace, cost: 2 }, { namespace: namespaceId, cost: 2 });
    expect(refused).toMatchObject({
      passed: false,
      limits: [
        { namespace, passed: true, remaining: 3 },
        { namespace: namespaceId, passed: false, remaining: 0 },
      ],
    });
    expect(await multi({ namespace, cost: 2 }, { namespace: namespaceId })).toMatchObject({
      passed: true,
      limits: [{ remaining: 1 }, { remaining: 0 }],
    });
  });

  test("multiLimit shares counters with ratelimit.limit, and cost 0 only checks", async () => {
    const namespace = unique("shared");
    await t.data("ratelimit.limit", entry({ namespace }));
    expect(await multi({ namespace, cost: 0 }, { namespace })).toMatchObject({
      passed: true,
      limits: [{ remaining: 2 }, { remaining: 1 }],
    });
  });

  test("100 concurrent multiLimit calls are admitted exactly up to the smaller limit", async () => {
    const [small, large] = [unique("small"), unique("large")];
    await multi({ namespace: small, cost: 0 }, { namespace: large, cost: 0 });
    const responses = await Promise.all(
      Array.from({ length: 100 }, (_, i) => {
        const both = [
          { namespace: small, limit: 42 },
          { namespace: large, limit: 1000 },
        ];
        return multi(...(i % 2 ? both : both.toReversed()));
      }),
    );
    expect(responses.filter(({ passed }) => passed)).toHaveLength(42);
    expect(await left({ namespace: large, limit: 1000 })).toBe(958);
  });

  test("multiLimit is atomic in the process while counters are unavailable", async () => {
    const namespace = unique("away");
    await t.data("ratelimit.createNamespace", { name: namespace });
    isUnavailable = true;
    try {
      const passed: boolean[] = [];
      for (let i = 0; i < 3; i++) passed.push((await multi({ namespace }, { namespace, cost: 1 })).passed);
      expect(passed).toEqual([true, false, false]);
    } finally {
      isUnavailable = false;
    }
  });
});

describe("overrides", () => {
  test("multiLimit applies overrides and names them in the response", async () => {
    const namespace = unique("over");
    await t.data("ratelimit.createNamespace", { name: namespace });
    const override = { namespace, identifier: "vip_*", limit: 9, duration: 2 * HOUR_MS };
    const { overrideId } = await t.data("ratelimit.setOverride", override);
    const { limits } = await multi({ namespace, identifier: "vip_1", cost: 2 }, { namespace });
    expect(limits[0]).toMatchObject({ limit: 9, remaining: 7, overrideId });
    expect(limits[0].reset % (2 * HOUR_MS)).toBe(0);
    expect(limits[1]).toMatchObject({ limit: 3, remaining: 2 });
    expect(limits[1]).not.toHaveProperty("overrideId");
  });
});

describe("namespaces", () => {
  test("multiLimit creates all missing namespaces with an audit entry each", async () => {
    const { id, rootKey } = await t.makeWorkspace();
    const names = ["new-b", "new-a"];
    const { body } = await ask(
      [...names, ...names].map((namespace) => ({ namespace })),
      { rootKey },
    );
    expect(body.data.passed).toBe(true);
    const rows = await t.audit(id);
    expect(rows.map(({ event, targets }) => [event, targets[0]?.name]).sort()).toEqual([
      ["ratelimitNamespace.create", "new-a"],
      ["ratelimitNamespace.create", "new-b"],
    ]);
    expect(new Set(rows.map(({ correlation_id }) => correlation_id)).size).toBe(1);
    expect(rows[0]?.request_id).toBe(body.meta.requestId);
  });

  test("100 concurrent multiLimit calls that name namespaces in different orders create each namespace only once", async () => {
    const names = Array.from({ length: 4 }, () => unique("crowd"));
    const responses = await Promise.all(
      Array.from({ length: 100 }, (_, i) => {
        const turned = [...names.slice(i % 4), ...names.slice(0, i % 4)];
        return multi(...turned.map((namespace) => ({ namespace, limit: 1000 })));
      }),
    );
    expect(responses.every(({ passed }) => passed)).toBe(true);
    for (const namespace of names) {
      expect((await namespacesLike(namespace)).filter(({ name }: { name: string }) => name === namespace)).toHaveLength(
        1,
      );
      expect(await left({ namespace, limit: 1000 })).toBe(900);
    }
  });

  test("multiLimit with a deleted namespace gets 410 without charges or creations", async () => {
    const [gone, live, fresh] = [unique("gone"), unique("live"), unique("fresh")];
    for (const name of [gone, live]) await t.data("ratelimit.createNamespace", { name });
    await t.data("ratelimit.deleteNamespace", { namespace: gone });
    const reply = await ask([live, fresh, gone].map((namespace) => ({ namespace })));
    expect([reply.status, kindOf(reply)]).toEqual([410, "ratelimit_namespace_gone"]);
    expect(reply.body.error.detail).toContain(gone);
    expect(await left({ namespace: live })).toBe(3);
    expect(await namespacesLike(fresh)).toEqual([]);
    expect(events.filter(({ type }) => type === "ratelimit")).toHaveLength(1);
  });

  test("multiLimit finds namespaces that another replica created, despite negative cache entries", async () => {
    const name = unique("elsewhere");
    const rootKey = await t.rootKey([`ratelimit.rlns_${made}.limit`]);
    expect((await ask([{ namespace: name }], { rootKey })).status).toBe(403);
    await t.deps.db.query(
      "insert into ratelimit_namespaces (id, workspace_id, name, created_at) values ($1, $2, $3, 0)",
      [`rlns_${made}`, t.workspace.id, name],
    );
    for (let i = 0; i < 2; i++) expect((await ask([{ namespace: name }], { rootKey })).status).toBe(200);
  });

  test("multiLimit does not find namespaces of another workspace", async () => {
    const { rootKey } = await t.makeWorkspace();
    const name = unique("theirs");
    const { namespaceId } = await t.data("ratelimit.createNamespace", { name });
    await multi({ namespace: name, cost: 3 });
    for (const namespace of [name, namespaceId]) {
      expect((await ask([{ namespace }], { rootKey })).body.data.limits).toMatchObject([{ remaining: 2 }]);
    }
  });
});

describe("permissions", () => {
  test("multiLimit of a new namespace requires create_namespace, then limit for all namespaces", async () => {
    const known = unique("known");
    const { namespaceId } = await t.data("ratelimit.createNamespace", { name: known });
    const entries = [known, "never-made"].map((namespace) => ({ namespace }));
    for (const { held, missing } of [
      { held: ["ratelimit.*.limit"], missing: "ratelimit.*.create_namespace" },
      { held: ["ratelimit.*.create_namespace", `ratelimit.${namespaceId}.limit`], missing: "ratelimit.*.limit" },
    ]) {
      const reply = await ask(entries, { rootKey: await t.rootKey(held) });
      expect(reply.status).toBe(403);
      expect(reply.body.error.detail).toContain(missing);
    }
    expect(await namespacesLike("never-made")).toEqual([]);
    expect(await left({ namespace: known })).toBe(3);
  });

  test("multiLimit requires limit for all namespaces or for each known namespace", async () => {
    const names = [unique("one"), unique("two")];
    const tuples: string[] = [];
    for (const name of names) {
      const { namespaceId } = await t.data("ratelimit.createNamespace", { name });
      tuples.push(`ratelimit.${namespaceId}.limit`);
    }
    const entries = names.map((namespace) => ({ namespace }));
    expect((await ask(entries, { rootKey: await t.rootKey(tuples) })).status).toBe(200);
    expect((await ask(entries, { rootKey: await t.rootKey(["ratelimit.*.limit"]) })).status).toBe(200);
    const refused = await ask(entries, { rootKey: await t.rootKey(tuples.slice(0, 1)) });
    expect(refused.status).toBe(403);
    expect(refused.body.error.detail).toContain(`ratelimit.*.limit or ${tuples[1]}`);
    expect(await left({ namespace: names[0] })).toBe(1);
  });

  test("multiLimit checks for 403 before 410", async () => {
    const name = unique("gone");
    const { namespaceId } = await t.data("ratelimit.createNamespace", { name });
    await t.data("ratelimit.deleteNamespace", { namespace: name });
    const statusWith = async (tuple: string): Promise<number> =>
      (await ask([{ namespace: name }], { rootKey: await t.rootKey([tuple]) })).status;
    expect(await statusWith("ratelimit.*.set_override")).toBe(403);
    expect(await statusWith(`ratelimit.${namespaceId}.limit`)).toBe(410);
  });
});

describe("the body", () => {
  const good = entry({ namespace: "bounds", duration: 1000, cost: 0 });

  test.each([
    { name: "one entry", body: [good] },
    { name: "hundred entries", body: Array(100).fill(good) },
    { name: "the longest duration", body: [{ ...good, duration: 2_592_000_000 }] },
    { name: "an identifier of 512", body: [{ ...good, identifier: "ü".repeat(512) }] },
  ])("multiLimit request body may be $name", async ({ body }) => {
    expect((await t.call("ratelimit.multiLimit", body)).status).toBe(200);
  });

  test.each([
    { name: "no entry", body: [], at: "body" },
    { name: "101 entries", body: Array(101).fill(good), at: "body" },
    { name: "an object", body: good, at: "body" },
    { name: "an entry that is no object", body: [good, 5], at: "body[1]" },
    { name: "an unknown member", body: [{ ...good, async: true }], at: "body[0].async" },
    { name: "limit 0", body: [good, good, { ...good, limit: 0 }], at: "body[2].limit" },
    { name: "a duration of 999", body: [{ ...good, duration: 999 }], at: "body[0].duration" },
    { name: "a duration of more than 30 days", body: [{ ...good, duration: 2_592_000_001 }], at: "body[0].duration" },
    { name: "a cost of -1", body: [{ ...good, cost: -1 }], at: "body[0].cost" },
    { name: "no identifier", body: [{ ...good, identifier: undefined }], at: "body[0].identifier" },
    { name: "an empty namespace", body: [{ ...good, namespace: "" }], at: "body[0].namespace" },
  ])("multiLimit request body may not be $name", async ({ body, at }) => {
    const reply = await t.call("ratelimit.multiLimit", body);
    expect(reply.status).toBe(400);
    expect(reply.body.error.errors[0].location).toBe(at);
  });

  test.each(["ratelimit.limit", "keys.verifyKey", "permissions.listRoles", "identities.createIdentity"])(
    "%s rejects a request body that is an array",
    async (path) => {
      const reply = await t.call(path, [good]);
      expect(reply.status).toBe(400);
      expect(reply.body.error.errors[0]).toEqual({ location: "body", message: "expected an object, got an array" });
    },
  );
});

test("multiLimit uses one counter call and records one event per entry", async () => {
  const [a, b] = [unique("a"), unique("b")];
  for (const name of [a, b]) await t.data("ratelimit.createNamespace", { name });
  const { body } = await ask([{ namespace: a }, { namespace: b, cost: 4 }, { namespace: a, identifier: "other" }]);
  expect(consumed.map(({ limits }) => limits.length)).toEqual([3]);
  const recorded = events.map((event) => (event.type === "ratelimit" ? event : undefined));
  expect(recorded).toMatchObject([
    { identifier: "user_1", passed: true, cost: 1, limit: 3, remaining: 3 },
    { identifier: "user_1", passed: false, cost: 4, limit: 3, remaining: 0 },
    { identifier: "other", passed: true, cost: 1, limit: 3, remaining: 3 },
  ]);
  expect(new Set(recorded.map((event) => event?.id)).size).toBe(3);
  expect(new Set(recorded.map((event) => event?.requestId))).toEqual(new Set([body.meta.requestId]));
});
