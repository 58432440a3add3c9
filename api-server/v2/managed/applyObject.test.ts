import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type Reply, type TestApp } from "../../test/app.ts";

let api: TestApp;
beforeAll(async () => {
  api = await buildTestApp();
});
afterAll(() => api.close());

let count = 0;
/** Returns a manager of its own cluster, so that the tests do not meet. */
const aManager = (kind: string, at: { cluster?: string; namespace?: string; name?: string } = {}): string => {
  count += 1;
  const { cluster = `c${count}`, namespace = "shop", name = "it" } = at;
  return `${cluster}/${kind}/${namespace}/${name}`;
};
const kindOf = (manager: string) => manager.split("/")[1];
const apply = (manager: string, spec: object, more: object = {}): Promise<Reply> =>
  api.call("managed.applyObject", { manager, kind: kindOf(manager), spec, ...more });
const applied = async (manager: string, spec: object, more: object = {}) => {
  const reply = await apply(manager, spec, more);
  expect(reply.body.error).toBeUndefined();
  return reply.body.data;
};
const remove = (manager: string, more: object = {}): Promise<Reply> =>
  api.call("managed.deleteObject", { manager, kind: kindOf(manager), ...more });
const refusalOf = ({ status, body }: Reply) => ({
  status,
  kind: body.error?.type.split("/").at(-1),
  location: body.error?.errors?.[0]?.location,
});
const query = async (text: string, values: unknown[] = []) => (await api.deps.db.query(text, values)).rows;
const auditOf = async (body: Reply["body"]) =>
  (await api.audit()).filter(({ request_id }) => request_id === body.meta.requestId);
const auditCount = async () => Number((await query("select count(*) as n from audit_log"))[0].n);
const aRole = (more: object = {}) => ({ name: `role-${count}`, permissions: ["a.read", "b.read"], ...more });
const aPolicy = (more: object = {}) => ({ api: { name: `orders-${count}` }, target: { port: 8080 }, ...more });

describe("a Role", () => {
  test("applyObject creates, changes or leaves a role unchanged, and lists the differences", async () => {
    const manager = aManager("Role");
    const spec = aRole({ description: "Reads." });
    const made = await applied(manager, spec);
    expect(made).toMatchObject({ outcome: "created", digest: expect.any(String), warnings: [] });
    expect(made.changes).toEqual([
      { path: "name", new: spec.name },
      { path: "description", new: "Reads." },
      { path: "permissions", new: ["a.read", "b.read"] },
    ]);
    const before = await auditCount();
    const again = await applied(manager, { ...spec, permissions: ["B.READ", "a.read"] });
    expect(again).toEqual({ ...made, outcome: "unchanged", changes: [] });
    expect(await auditCount()).toBe(before);
    const changed = await applied(manager, { ...spec, description: "", permissions: ["c.read"] });
    expect(changed).toMatchObject({ outcome: "updated", ids: made.ids });
    expect(changed.changes).toEqual([
      { path: "permissions", old: ["a.read", "b.read"], new: ["c.read"] },
      { path: "description", old: "Reads." },
    ]);
    expect(changed.digest).not.toBe(made.digest);
    const role = await api.data("permissions.getRole", { role: made.ids.roleId });
    expect(role.permissions.map(({ slug }: { slug: string }) => slug)).toEqual(["c.read"]);
    expect(role.description).toBeUndefined();
  });

  test("audit rows of one call share a correlation id, whichever part of the role changes", async () => {
    const manager = aManager("Role");
    await applied(manager, aRole());
    const { status, body } = await apply(manager, aRole({ description: "Reads.", permissions: [`new-${count}.read`] }));
    expect(status).toBe(200);
    const rows = await auditOf(body);
    expect(new Set(rows.map(({ event }) => event))).toEqual(
      new Set([
        "role.update",
        "permission.create",
        "authorization.disconnect_role_and_permissions",
        "authorization.connect_role_and_permission",
      ]),
    );
    expect(new Set(rows.map(({ correlation_id }) => correlation_id))).toEqual(
      new Set([expect.stringMatching(/^cor_/)]),
    );
    expect(rows.map(({ actor }) => actor)).toEqual(rows.map(() => expect.objectContaining({ meta: { manager } })));
  });

  test("role with 1,000 permissions is stored completely or not at all", async () => {
    const manager = aManager("Role");
    const permissions = Array.from({ length: 1000 }, (_, i) => `many-${count}.${i}`);
    // A taken name makes the second step fail, after the first one has been performed.
    await api.data("permissions.createRole", { name: `taken-${count}` });
    await applied(manager, aRole({ permissions: [] }));
    const name = `taken-${count}`;
    expect(refusalOf(await apply(manager, { name, permissions }))).toMatchObject({
      status: 409,
      kind: "role_already_exists",
    });
    expect(await query("select from permissions where slug like $1", [`many-${count}.%`])).toEqual([]);
    await applied(manager, aRole({ permissions }));
    expect(await query("select from permissions where slug like $1", [`many-${count}.%`])).toHaveLength(1000);
  });

  test.each([
    { adopt: undefined, isEqual: true, refused: "unmanaged_exists" },
    { adopt: "Match", isEqual: true, refused: undefined },
    { adopt: "Match", isEqual: false, refused: "unmanaged_exists" },
    { adopt: "Override", isEqual: false, refused: undefined },
  ])("unmanaged role (adopt: $adopt, equal: $isEqual) is either adopted or rejected as $refused", async (one) => {
    const manager = aManager("Role");
    const { adopt, isEqual, refused } = one;
    const spec = aRole(adopt === undefined ? {} : { adopt });
    const { name, permissions } = aRole();
    await api.data("permissions.createRole", { name, permissions: isEqual ? permissions : [] });
    const reply = await apply(manager, spec);
    if (refused === undefined) expect(reply.body.data.outcome).toBe("updated");
    else expect(refusalOf(reply)).toEqual({ status: 409, kind: refused, location: "body.spec.name" });
    const [role] = await query("select manager from roles where name = $1", [name]);
    expect(role.manager).toBe(refused === undefined ? manager : null);
    // The member of the call takes precedence over the spec.
    if (refused !== undefined) await applied(manager, spec, { adopt: "Override" });
  });

  test("role of another manager is rejected; a released one can be taken back, or adopted within its Kubernetes namespace", async () => {
    const first = aManager("Role");
    const [cluster] = first.split("/");
    const spec = aRole({ adopt: "Override" });
    await applied(first, spec);
    const other = aManager("Role", { namespace: "lab" });
    expect(refusalOf(await apply(other, spec))).toEqual({
      status: 409,
      kind: "managed_by_manifest",
      location: "body.spec.name",
    });
    expect((await remove(first, { deletionPolicy: "Orphan" })).body.data.outcome).toBe("released");
    expect(refusalOf(await apply(other, spec)).kind).toBe("unmanaged_exists");
    const neighbour = aManager("Role", { cluster: cluster ?? "", name: "neighbour" });
    expect((await applied(neighbour, spec)).outcome).toBe("updated");
    await remove(neighbour, { deletionPolicy: "Orphan" });
    const { name, permissions } = spec;
    expect((await applied(neighbour, { name, permissions })).outcome).toBe("updated");
  });

  test("deleteObject keeps a role that a key has, unless the deletion policy is Delete", async () => {
    const manager = aManager("Role");
    const spec = aRole();
    const { ids } = await applied(manager, spec);
    const { apiId } = await api.data("apis.createApi", { name: "orders" });
    await api.data("keys.createKey", { apiId, roles: [spec.name] });
    expect(refusalOf(await remove(manager)).kind).toBe("protected_resource");
    expect((await remove(manager, { deletionPolicy: "Delete", dryRun: true })).body.data).toEqual({
      outcome: "deleted",
      ids,
    });
    expect((await remove(manager, { deletionPolicy: "Delete" })).body.data.outcome).toBe("deleted");
    expect((await remove(manager, { deletionPolicy: "Delete" })).body.data).toEqual({ outcome: "absent", ids: {} });
  });
});

describe("a RatelimitNamespace and its overrides", () => {
  test("rate-limit namespace is created only once and keeps its name, and an override can refer to it", async () => {
    const manager = aManager("RatelimitNamespace");
    const [cluster = ""] = manager.split("/");
    const name = `limits-${count}`;
    const override = aManager("RatelimitOverride", { cluster });
    const spec = { namespaceRef: { name: "it" }, identifier: "acme", limit: 5, duration: "1h" };
    expect(refusalOf(await apply(override, spec))).toEqual({
      status: 404,
      kind: "ratelimit_namespace_not_found",
      location: "body.spec.namespaceRef",
    });
    const { ids } = await applied(manager, { name });
    expect((await applied(manager, { name })).outcome).toBe("unchanged");
    expect(refusalOf(await apply(manager, { name: "else" }))).toEqual({
      status: 400,
      kind: "invalid_input",
      location: "body.spec.name",
    });
    const made = await applied(override, spec);
    expect(made.ids).toEqual({ overrideId: expect.any(String), namespaceId: ids.namespaceId });
    const changed = await applied(override, { ...spec, limit: 0, duration: "2h", async: true });
    expect(changed.changes).toEqual([
      { path: "limit", old: 5, new: 0 },
      { path: "durationMs", old: 3_600_000, new: 7_200_000 },
      { path: "async", old: false, new: true },
    ]);
    // The Kubernetes API server would reject a moved override, but a directory may contain one.
    const moved = await applied(override, { ...spec, identifier: "umbrella" });
    expect(moved.ids.overrideId).not.toBe(made.ids.overrideId);
    const rows = await query("select identifier from ratelimit_overrides where manager = $1 and deleted_at is null", [
      override,
    ]);
    expect(rows).toEqual([{ identifier: "umbrella" }]);
    expect((await remove(override)).body.data).toMatchObject({ outcome: "deleted" });
    expect((await remove(manager)).body.data).toEqual({ outcome: "deleted", ids });
  });

  test("override requires that a rate-limit namespace of another Kubernetes namespace allows the reference", async () => {
    const manager = aManager("RatelimitNamespace", { namespace: "platform" });
    const [cluster = ""] = manager.split("/");
    await applied(manager, { name: `platform-${count}` });
    const override = aManager("RatelimitOverride", { cluster });
    const namespaceRef = { name: "it", namespace: "platform" };
    const spec = { namespaceRef, identifier: "acme", limit: 5, duration: "1h" };
    expect(refusalOf(await apply(override, spec))).toEqual({
      status: 409,
      kind: "reference_not_allowed",
      location: "body.spec.namespaceRef",
    });
    // The permission of another manifest does not help.
    const wrong = { mayReferTo: [`${cluster}/RatelimitNamespace/platform/other`] };
    expect(refusalOf(await apply(override, spec, wrong)).kind).toBe("reference_not_allowed");
    expect((await applied(override, spec, { mayReferTo: [manager] })).outcome).toBe("created");
  });
});

describe("an ApiKeyPolicy", () => {
  const limit = (max: number, more: object = {}) => ({
    ratelimits: [{ name: "burst", limit: max, duration: "1m", ...more }],
    match: { path: { prefix: "/" } },
  });

  test("applyObject creates the API and the policy, and reports a changed limit as one difference", async () => {
    const manager = aManager("ApiKeyPolicy");
    const made = await applied(manager, aPolicy({ rules: [limit(10)] }), { uid: "u1", generation: 4 });
    const { apiId } = made.ids;
    expect(made).toMatchObject({ outcome: "created", policy: { version: 1, dataPlane: { pods: 0 }, apiId, manager } });
    expect(made.policy).toMatchObject({ workspaceId: api.workspace.id, api: { name: `orders-${count}`, manager } });
    expect(made.changes.map(({ path }: { path: string }) => path)).toEqual(["api", "policy"]);
    const before = await auditCount();
    const again = await applied(manager, aPolicy({ rules: [limit(10)] }), { uid: "u1", generation: 4 });
    expect(again).toEqual({ ...made, outcome: "unchanged", changes: [] });
    expect(await auditCount()).toBe(before);
    const changed = await applied(manager, aPolicy({ rules: [limit(20)] }), { uid: "u1", generation: 5 });
    expect(changed).toMatchObject({ outcome: "updated", policy: { version: 2, generation: 5 }, ids: made.ids });
    expect(changed.changes).toEqual([{ path: "policy.rules[0].ratelimits[0].limit", old: 10, new: 20 }]);
    expect(refusalOf(await apply(manager, aPolicy(), { uid: "u1", generation: 3 })).kind).toBe(
      "stale_policy_generation",
    );
    const stored = await api.data("policies.getPolicy", { policyId: made.ids.policyId });
    expect(stored).toMatchObject({ uid: "u1", generation: 5, manager, apiId: made.ids.apiId });
    expect(stored.policy.rules[0].ratelimits[0].limit).toBe(20);
  });

  test("without a given generation, each change of a policy increments it, and an equal policy keeps it", async () => {
    const manager = aManager("ApiKeyPolicy");
    const generationOf = async ({ ids }: { ids: { policyId: string } }) =>
      (await api.data("policies.getPolicy", { policyId: ids.policyId })).generation;
    const made = await applied(manager, aPolicy());
    expect(await generationOf(made)).toBe(1);
    await applied(manager, aPolicy({ mode: "Audit" }));
    expect(await generationOf(made)).toBe(2);
    expect((await applied(manager, aPolicy({ mode: "Audit" }))).outcome).toBe("unchanged");
    expect(await generationOf(made)).toBe(2);
  });

  test.each([
    {
      name: "an invalid query",
      spec: { rules: [{ match: {}, permissions: "a and" }] },
      status: 400,
      location: "body.spec.rules[0].permissions",
    },
    { name: "an unknown field", spec: { modes: "Audit" }, status: 400, location: "body.spec.modes" },
    {
      name: "an unknown namespace",
      spec: { rules: [limit(1, { name: undefined, namespace: "absent", by: ["key"] })] },
      status: 404,
      location: "body.spec.rules[0].ratelimits[0].namespace",
    },
    { name: "an unknown API", spec: { api: { id: "api_unknown1" } }, status: 404, location: "body.spec.api.id" },
  ])("applyObject refuses a policy with $name at its field, and stores nothing", async ({ spec, status, location }) => {
    const manager = aManager("ApiKeyPolicy");
    const reply = await apply(manager, aPolicy(spec));
    expect(refusalOf(reply)).toMatchObject({ status, location });
    expect(await query("select from apis where manager = $1", [manager])).toEqual([]);
  });

  test("policy requires that an API of another manifest allows the reference, and a manifest takes back an API that it released", async () => {
    const owner = aManager("ApiKeyPolicy", { namespace: "platform" });
    const [cluster = ""] = owner.split("/");
    const { ids } = await applied(owner, aPolicy());
    const manager = aManager("ApiKeyPolicy", { cluster });
    const spec = aPolicy({ api: { id: ids.apiId } });
    expect(refusalOf(await apply(manager, spec))).toEqual({
      status: 409,
      kind: "reference_not_allowed",
      location: "body.spec.api.id",
    });
    expect((await applied(manager, spec, { mayReferTo: [owner] })).ids.apiId).toBe(ids.apiId);
    expect(refusalOf(await apply(manager, aPolicy(), { mayReferTo: [owner] }))).toMatchObject({
      kind: "invalid_input",
      location: "body.spec.api",
    });
    const removed = (await remove(owner)).body;
    expect(removed.data).toEqual({ outcome: "released", ids });
    const rows = await auditOf(removed);
    expect(rows.map(({ event }) => event).sort()).toEqual(["api.update", "policy.delete"]);
    expect(new Set(rows.map(({ correlation_id }) => correlation_id))).toEqual(
      new Set([expect.stringMatching(/^cor_/)]),
    );
    expect((await applied(owner, aPolicy())).ids.apiId).toBe(ids.apiId);
  });

  test("API with keys is released but not deleted", async () => {
    const manager = aManager("ApiKeyPolicy");
    const { ids } = await applied(manager, aPolicy());
    const { keyId } = await api.data("keys.createKey", { apiId: ids.apiId });
    expect(refusalOf(await remove(manager, { deletionPolicy: "Delete" }))).toMatchObject({
      status: 412,
      kind: "api_has_keys",
    });
    expect((await api.data("policies.getPolicy", { policyId: ids.policyId })).manager).toBe(manager);
    await api.data("keys.deleteKey", { keyId });
    expect((await remove(manager, { deletionPolicy: "Delete" })).body.data.outcome).toBe("deleted");
    expect((await api.call("apis.getApi", { apiId: ids.apiId })).status).toBe(404);
  });
});

describe("an ApiKey", () => {
  const aKey = async (more: object = {}) => {
    const { apiId } = await api.data("apis.createApi", { name: "orders" });
    const spec = { apiRef: { id: apiId }, secretRef: { name: "billing" }, ...more };
    return { manager: aManager("ApiKey"), spec, apiId };
  };
  const verify = async (key: string) => (await api.data("keys.verifyKey", { key })).code;

  test("key is issued once, comes into use when the Secret contains it, and keeps its spent credits", async () => {
    const { manager, spec, apiId } = await aKey({ credits: { remaining: 3 } });
    expect(refusalOf(await apply(manager, spec))).toMatchObject({ status: 400, location: "body.secret" });
    const waiting = await applied(manager, spec, { secret: { mayIssue: false } });
    expect(waiting).toMatchObject({ outcome: "unchanged", ids: { apiId }, key: { needsIssue: true } });
    const { key } = await applied(manager, spec, { secret: { mayIssue: true } });
    const { keyId, key: text } = key.issued;
    expect(await verify(text)).toBe("VALID");
    const secret = { keyId, mayIssue: false };
    const used = await applied(manager, spec, { secret });
    expect(used).toMatchObject({ outcome: "updated", ids: { keyId }, changes: [] });
    expect(used.key).not.toHaveProperty("issued");
    expect((await applied(manager, spec, { secret })).outcome).toBe("unchanged");
    // The change of the refill suspends the counter until the transaction has been committed.
    const refill = { interval: "Daily", amount: 9 };
    const changed = await applied(manager, { ...spec, credits: { remaining: 3, refill } }, { secret });
    expect(changed.changes.map(({ path }: { path: string }) => path)).toEqual(["credits"]);
    expect([await verify(text), await verify(text), await verify(text)]).toEqual(["VALID", "VALID", "USAGE_EXCEEDED"]);
    expect((await api.data("keys.getKey", { keyId })).credits).toMatchObject({ remaining: 0, refill: { amount: 9 } });
    expect((await remove(manager)).body.data).toEqual({ outcome: "deleted", ids: { keyId } });
    expect(await verify(text)).toBe("NOT_FOUND");
    expect((await remove(manager)).body.data.outcome).toBe("absent");
  });

  test("keys with credits are applied concurrently by more callers than the pool has connections", async () => {
    const keys = await Promise.all(Array.from({ length: 12 }, () => aKey({ credits: { remaining: 3 } })));
    const states = await Promise.all(
      keys.map(async ({ manager, spec }) => {
        const { key } = await applied(manager, spec, { secret: { mayIssue: true } });
        const secret = { keyId: key.issued.keyId, mayIssue: false };
        await applied(manager, spec, { secret });
        return { manager, spec, secret };
      }),
    );
    const replies = await Promise.all(states.map(({ manager, spec, secret }) => applied(manager, spec, { secret })));
    expect(replies.map(({ outcome }) => outcome)).toEqual(states.map(() => "unchanged"));
  });

  test("secret of an issued key is never logged, and a dry run issues no key", async () => {
    const { manager, spec } = await aKey();
    const dry = await applied(manager, spec, { secret: { mayIssue: true }, dryRun: true });
    expect(dry).toMatchObject({ outcome: "created", ids: {} });
    expect(dry).not.toHaveProperty("key");
    const { key } = await applied(manager, spec, { secret: { mayIssue: true } });
    expect(api.logs.join("\n")).not.toContain(key.issued.key);
    const audit = await query("select audit_log::text as text from audit_log");
    expect(audit.some(({ text }) => text.includes(key.issued.key))).toBe(false);
  });

  test("20 concurrent calls that may issue a key leave at most one key that is not revoked", async () => {
    const { manager, spec } = await aKey();
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => apply(manager, spec, { secret: { mayIssue: true } })),
    );
    const kinds = new Set(replies.map((reply) => refusalOf(reply).kind));
    expect([...kinds].filter((kind) => kind !== undefined && kind !== "managed_exists")).toEqual([]);
    expect(replies.some(({ status }) => status === 200)).toBe(true);
    expect(await query("select from keys where manager = $1 and deleted_at is null", [manager])).toHaveLength(1);
  });

  test("key requires that a policy in another Kubernetes namespace allows the reference", async () => {
    const owner = aManager("ApiKeyPolicy", { namespace: "platform" });
    const [cluster = ""] = owner.split("/");
    const manager = aManager("ApiKey", { cluster });
    const spec = { policyRef: { name: "it", namespace: "platform" }, secretRef: { name: "billing" } };
    const secret = { mayIssue: true };
    expect(refusalOf(await apply(manager, spec, { secret })).kind).toBe("reference_not_allowed");
    expect(refusalOf(await apply(manager, spec, { secret, mayReferTo: [owner] }))).toEqual({
      status: 404,
      kind: "api_not_found",
      location: "body.spec.policyRef",
    });
    const { ids } = await applied(owner, aPolicy());
    const made = await applied(manager, spec, { secret, mayReferTo: [owner] });
    expect(made).toMatchObject({ outcome: "created", ids: { apiId: ids.apiId } });
  });
});

test.each(["Role", "RatelimitNamespace", "ApiKeyPolicy"])(
  "%s that may only change what it manages neither creates nor adopts, and still changes its own",
  async (kind) => {
    const manager = aManager(kind);
    const spec = kind === "ApiKeyPolicy" ? aPolicy() : { name: `only-${kind}-${count}` };
    const only = { onlyIfManaged: true };
    expect(refusalOf(await apply(manager, spec, only))).toMatchObject({ status: 409, kind: "not_managed" });
    await applied(manager, spec);
    expect((await applied(manager, spec, only)).outcome).toBe("unchanged");
    await remove(manager, { deletionPolicy: "Orphan" });
    expect(refusalOf(await apply(manager, spec, { ...only, adopt: "Override" })).kind).toBe("not_managed");
  },
);

describe("a dry run", () => {
  test("dry run shows the differences and writes nothing", async () => {
    const manager = aManager("ApiKeyPolicy");
    const dump = () =>
      query("select (select count(*) from apis) a, (select count(*) from policies) p, (select count(*) from outbox) o");
    const before = [await dump(), await auditCount()];
    const shown = await applied(manager, aPolicy(), { dryRun: true });
    expect(shown).toMatchObject({ outcome: "created", ids: {} });
    expect(shown.changes.length).toBeGreaterThan(0);
    expect([await dump(), await auditCount()]).toEqual(before);
    const { ids } = await applied(manager, aPolicy());
    const next = await applied(manager, aPolicy({ mode: "Audit" }), { dryRun: true });
    expect(next).toMatchObject({ outcome: "updated", ids });
    expect(next.changes).toEqual([{ path: "policy.mode", old: "Enforce", new: "Audit" }]);
    expect((await api.data("policies.getPolicy", { policyId: ids.policyId })).policy.mode).toBe("Enforce");
  });

  test("dry run needs only permissions to read, whereas the change needs more", async () => {
    const rootKey = await api.rootKey(["rbac.*.read_role"]);
    const body = { manager: aManager("Role"), kind: "Role", spec: aRole() };
    expect((await api.call("managed.applyObject", { ...body, dryRun: true }, { rootKey })).body.data.outcome).toBe(
      "created",
    );
    expect((await api.call("managed.applyObject", body, { rootKey })).status).toBe(403);
    expect(await query("select from roles where name = $1", [body.spec.name])).toEqual([]);
  });
});

describe("fencing numbers", () => {
  test("fencing number that is lower than an earlier one of the same cluster is rejected, and changes nothing", async () => {
    const manager = aManager("Role");
    const [cluster = ""] = manager.split("/");
    await applied(manager, aRole(), { onlyIfFence: 7 });
    await applied(manager, aRole({ permissions: [] }), { onlyIfFence: 7 });
    const late = await apply(manager, aRole({ permissions: ["late"] }), { onlyIfFence: 6 });
    expect(refusalOf(late)).toMatchObject({ status: 409, kind: "stale_leader" });
    expect(refusalOf(await remove(manager, { onlyIfFence: 6 })).kind).toBe("stale_leader");
    expect((await applied(manager, aRole({ permissions: [] }))).outcome).toBe("unchanged");
    expect(refusalOf(await apply(manager, aRole(), { onlyIfFence: 6, dryRun: true })).kind).toBe("stale_leader");
    await applied(manager, aRole({ permissions: [] }), { onlyIfFence: 8 });
    expect(refusalOf(await apply(manager, aRole(), { onlyIfFence: 7 })).kind).toBe("stale_leader");
    await applied(aManager("Role"), aRole(), { onlyIfFence: 1 });
    await applied(aManager("Role", { cluster: `${cluster}x` }), aRole(), { onlyIfFence: 0 });
  });

  test("fencing number is not raised by a dry run, a rejected call, or a root key without permissions", async () => {
    const manager = aManager("Role");
    const spec = aRole();
    await applied(manager, spec, { onlyIfFence: 1 });
    const body = { manager, kind: "Role", spec: aRole({ permissions: ["other"] }), onlyIfFence: 2_147_483_647 };
    expect((await api.call("managed.applyObject", { ...body, dryRun: true })).status).toBe(200);
    const rootKey = await api.rootKey(["rbac.*.read_role"]);
    expect((await api.call("managed.applyObject", body, { rootKey })).status).toBe(403);
    await api.data("permissions.createRole", { name: `fenced-${count}` });
    const taken = { ...body, spec: aRole({ name: `fenced-${count}` }) };
    expect((await api.call("managed.applyObject", taken)).status).toBe(409);
    expect((await applied(manager, spec, { onlyIfFence: 1 })).outcome).toBe("unchanged");
  });

  test("call that a former leader has begun ends before the fencing number rises, and its later calls are rejected", async () => {
    const manager = aManager("Role");
    await applied(manager, aRole(), { onlyIfFence: 1 });
    const block = await api.deps.db.connect();
    try {
      await block.query("begin");
      await block.query("select from roles where manager = $1 for update", [manager]);
      // The former leader's call waits for the role, after it has passed the check of its number.
      const former = apply(manager, aRole({ permissions: ["former"] }), { onlyIfFence: 1 });
      await expect.poll(async () => (await query(WAITING)).length).toBe(1);
      const next = apply(manager, aRole({ permissions: ["next"] }), { onlyIfFence: 2 });
      await expect.poll(async () => (await query(WAITING)).length).toBe(2);
      await block.query("rollback");
      expect((await former).body.data.outcome).toBe("updated");
      expect((await next).body.data.changes).toEqual([{ path: "permissions", old: ["former"], new: ["next"] }]);
    } finally {
      block.release();
    }
  });

  test.each([
    { name: "succeeds", spec: () => aRole({ permissions: ["next"] }), status: 200, formerStatus: 409 },
    { name: "fails", spec: () => aRole({ name: `fenced-${count}` }), status: 409, formerStatus: 200 },
  ])("former leader's call during the first call of the next waits for it, which $name", async (given) => {
    const manager = aManager("Role");
    await applied(manager, aRole(), { onlyIfFence: 1 });
    await api.data("permissions.createRole", { name: `fenced-${count}` });
    const block = await api.deps.db.connect();
    try {
      await block.query("begin");
      await block.query("select from roles where manager = $1 for update", [manager]);
      const next = apply(manager, given.spec(), { onlyIfFence: 2 });
      await expect.poll(async () => (await query(WAITING)).length).toBe(1);
      const former = apply(manager, aRole({ permissions: ["former"] }), { onlyIfFence: 1 });
      await expect.poll(async () => (await query(WAITING)).length).toBe(2);
      await block.query("rollback");
      expect((await next).status).toBe(given.status);
      expect((await former).status).toBe(given.formerStatus);
    } finally {
      block.release();
    }
  });

  const WAITING = "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";

  test("100 concurrent first calls with new fencing numbers raise the number without a deadlock", async () => {
    const manager = aManager("Role");
    const replies = await Promise.all(
      Array.from({ length: 100 }, (_, i) => apply(manager, aRole(), { onlyIfFence: i % 5 })),
    );
    const kinds = new Set(replies.map((reply) => refusalOf(reply).kind));
    expect([...kinds].filter((kind) => kind !== undefined)).toEqual(["stale_leader"]);
    expect(replies.filter((_, i) => i % 5 === 4).every(({ status }) => status === 200)).toBe(true);
  });
});

test.each([
  { body: { manager: "main/Role/shop" } },
  { body: { manager: "main/ApiKeyPolicy/shop/it" }, location: "body.manager" },
  { body: { kind: "Permission" } },
  { body: { spec: [] } },
  { body: { uid: "" }, location: "body.uid" },
  { body: { generation: 0 }, location: "body.generation" },
  { body: { onlyIfFence: -1 } },
  { body: { onlyIfFence: 2_147_483_648 } },
  { body: { spec: JSON.parse('{"name":"it","__proto__":{"permissions":["a"]}}') }, location: "body.spec.__proto__" },
  { body: { spec: { name: "it", permissions: ["a\u0000"] } }, location: "body.spec.permissions[0]" },
])("applyObject rejects $body", async ({ body, location }) => {
  const manager = "main/Role/shop/it";
  const reply = await api.call("managed.applyObject", { manager, kind: "Role", spec: { name: "it" }, ...body });
  expect(reply.status).toBe(400);
  if (location !== undefined) expect(refusalOf(reply).location).toBe(location);
});

test("20 concurrent calls for one new manifest store its object only once", async () => {
  const manager = aManager("ApiKeyPolicy");
  const spec = aPolicy();
  const replies = await Promise.all(Array.from({ length: 20 }, () => apply(manager, spec)));
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(replies.map(({ body }) => JSON.stringify(body.data.ids))).size).toBe(1);
  expect(await query("select from apis where manager = $1", [manager])).toHaveLength(1);
});
