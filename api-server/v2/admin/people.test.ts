import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { hashKey } from "../../../core/keys/key-string.ts";
import { DEFAULT_SESSION_TIMES } from "../../../core/sessions/session-end.ts";
import { followRoles } from "../../sign-in/roles-file.ts";
import { buildTestApp, type Reply, type TestApp, type Workspace } from "../../test/app.ts";
import { browserWith, cookieOf, followLink, type LinkOptions, type PersonAtPage, signIn } from "../../test/people.ts";

/* People, their sessions and sign-in links, as admins of a workspace manage them. */

let rolesFile = "groups: {}";
let t: TestApp;
let shop: Workspace;
let bank: Workspace;
beforeAll(async () => {
  t = await buildTestApp({
    signIn: {
      bounds: { windowMs: 60_000, address: 1e6, all: 1e6, failed: 0, nowMs: Date.now },
      rolesOfGroups: followRoles(() => rolesFile),
    },
  });
});
afterAll(() => t.close());
beforeEach(async () => {
  await t.deps.db.query("delete from sessions");
  await t.deps.db.query("delete from sign_in_links");
  [shop, bank] = [await t.makeWorkspace(), await t.makeWorkspace()];
  rolesFile = "groups: {}";
});

const kindOf = ({ status, body }: Reply) => [status, body.error?.type.split("/").at(-1)];
const at = (person: PersonAtPage, workspace: Workspace) => ({
  call: (path: string, body: object = {}) => person.call(path, body, { "postern-workspace": workspace.id }),
  data: async (path: string, body: object = {}) => {
    const reply = await at(person, workspace).call(path, body);
    if (reply.status !== 200) throw new Error(JSON.stringify(reply.body));
    return reply.body.data;
  },
});
const adminOf = async (workspace: Workspace) =>
  at(await signIn(t, { name: "Admin", workspaceId: workspace.id }), workspace);
const adminOfAll = async () => at(await signIn(t, { name: "Root" }), shop);
const idOf = async (person: PersonAtPage): Promise<string> =>
  (await t.deps.db.query("select id from sessions where token_hash = $1", [hashKey(person.token)])).rows[0].id;
const isIn = async (person: PersonAtPage): Promise<boolean> =>
  kindOf(await person.call("workspaces.getWorkspace"))[1] !== "session_ended";

/** Signs in a person whose groups an OpenID provider named. */
async function withGroups(name: string, groups: readonly string[], email: string | null = null): Promise<PersonAtPage> {
  const person = await signIn(t, { name });
  await t.deps.db.query(
    `update sessions set signed_in_by = 'oidc', issuer = 'https://id.test', subject = $2, email = $3, roles = '[]', groups = $4,
            link_made_by = null
      where id = $1`,
    [await idOf(person), `sub-${name}`, email, JSON.stringify(groups)],
  );
  return person;
}

const rolesOf = (groups: Record<string, Record<string, string>>): void => {
  rolesFile = JSON.stringify({ groups });
};

describe("admin.listPeople", () => {
  test("each person is listed once, with the role and the groups that count in this workspace under the current roles file", async () => {
    rolesOf({ team: { [shop.id]: "operator" }, payments: { [bank.id]: "admin" }, ops: { "*": "admin" } });
    const admin = await adminOf(shop);
    await withGroups("Grace", ["team", "payments", "unknown"], "grace@example.com");
    await withGroups("Grace", ["team"], "grace@example.com");
    await withGroups("Other", ["payments"]);
    await withGroups("Zoe", ["ops"]);
    const people = await admin.data("admin.listPeople");
    expect(people).toMatchObject([
      { name: "Admin", signedInBy: "link", linkMadeBy: "root@host", role: "admin", allWorkspaces: false, groups: [] },
      {
        name: "Grace",
        email: "grace@example.com",
        subject: "sub-Grace",
        signedInBy: "oidc",
        role: "operator",
        groups: ["team"],
        sessions: 2,
      },
      { name: "Zoe", role: "admin", allWorkspaces: true, groups: ["ops"] },
    ]);
    rolesOf({ team: { [shop.id]: "viewer" }, payments: { [shop.id]: "viewer" } });
    expect(
      (await admin.data("admin.listPeople")).map(({ name, role }: { name: string; role: string }) => [name, role]),
    ).toEqual([
      ["Admin", "admin"],
      ["Grace", "viewer"],
      ["Other", "viewer"],
    ]);
  });

  test("people of another workspace and ended or idle sessions are not listed, and no response contains a token", async () => {
    const admin = await adminOf(shop);
    const [gone, idle] = [
      await signIn(t, { name: "Gone", workspaceId: shop.id }),
      await signIn(t, { name: "Idle", workspaceId: shop.id }),
    ];
    await gone.signOut();
    await t.deps.db.query("update sessions set last_seen_at = last_seen_at - $2 where id = $1", [
      await idOf(idle),
      DEFAULT_SESSION_TIMES.idleMs + 60_000,
    ]);
    const same = await signIn(t, { name: "Twin", workspaceId: shop.id, role: "viewer" });
    const other = await signIn(t, { name: "Twin", workspaceId: bank.id });
    const people = await admin.data("admin.listPeople");
    expect(people.map(({ name, sessions }: { name: string; sessions: number }) => [name, sessions])).toEqual([
      ["Admin", 1],
      ["Twin", 1],
    ]);
    const twin = await admin.data("admin.getPerson", { sessionId: await idOf(same) });
    expect(twin.openSessions).toMatchObject([{ sessionId: await idOf(same), role: "viewer", isCaller: false }]);
    expect(kindOf(await admin.call("admin.getPerson", { sessionId: await idOf(other) }))).toEqual([
      404,
      "session_not_found",
    ]);
    for (const person of [same, other, gone]) {
      expect(JSON.stringify([people, twin])).not.toContain(person.token);
      expect(JSON.stringify([people, twin])).not.toContain(hashKey(person.token));
    }
  });

  test("people are found by parts of their name, e-mail address or id, and wildcard characters are matched literally", async () => {
    rolesOf({ team: { [shop.id]: "viewer" } });
    const admin = await adminOf(shop);
    await withGroups("Grace", ["team"], "hopper@example.com");
    await withGroups("100%_sure", ["team"]);
    const found = async (search: string) =>
      (await admin.data("admin.listPeople", { search })).map(({ name }: { name: string }) => name);
    expect(await found(" HOPPER@ ")).toEqual(["Grace"]);
    expect(await found("sub-gr")).toEqual(["Grace"]);
    expect(await found("%_")).toEqual(["100%_sure"]);
    expect(await found("nobody")).toEqual([]);
  });

  test("list of 10,000 sessions is paged completely, in order and quickly", async () => {
    rolesOf({
      team: { [shop.id]: "viewer" },
      ...Object.fromEntries(names(2000).map((name) => [name, { x: "admin" }])),
    });
    const admin = await adminOf(shop);
    await t.deps.db.query(
      `insert into sessions (id, token_hash, issuer, subject, name, signed_in_by, groups, created_at, last_seen_at, expires_at)
       select 'ses_many' || i, 'many' || i, 'https://id.test', 'sub' || (i % 9000), 'Person ' || (i % 9000), 'oidc',
              (select jsonb_agg('group' || g) from generate_series(i % 50, i % 50 + 20) g) || case when i % 9 = 0 then '["team"]' else '[]' end::jsonb,
              $1, $1, $1::bigint + 3600000
         from generate_series(1, 10000) i`,
      [Date.now()],
    );
    const seen: string[] = [];
    const tookMs: number[] = [];
    let cursor: string | undefined;
    do {
      const since = performance.now();
      const { body } = await admin.call("admin.listPeople", {
        limit: 100,
        ...(cursor === undefined ? {} : { cursor }),
      });
      tookMs.push(performance.now() - since);
      seen.push(...body.data.map(({ name }: { name: string }) => name));
      cursor = body.pagination.cursor;
    } while (cursor !== undefined);
    // Sessions 9 and 9009 are of one person, and so on.
    expect(seen).toHaveLength(1001);
    expect(new Set(seen).size).toBe(1001);
    expect(tookMs.sort((a, b) => a - b)[5]).toBeLessThan(1000);
  });
});

const names = (count: number): string[] => Array.from({ length: count }, (_, at) => `group${at}`);

describe("admin.deleteSession", () => {
  test("ended session is rejected from the next call, the person's other sessions are not, and the audit log names who ended it", async () => {
    const admin = await adminOf(shop);
    const ada = () => signIn(t, { name: "Ada", workspaceId: shop.id, role: "operator" });
    const [one, other] = [await ada(), await ada()];
    const sessionId = await idOf(one);
    expect(await admin.data("admin.deleteSession", { sessionId })).toEqual({ sessions: 1, links: 0 });
    expect([await isIn(one), await isIn(other)]).toEqual([false, true]);
    expect(kindOf(await admin.call("admin.deleteSession", { sessionId }))).toEqual([404, "session_not_found"]);
    expect((await t.audit(shop.id)).at(-1)).toMatchObject({
      event: "session.delete",
      actor: { type: "user", name: "Admin" },
      targets: [{ type: "session", id: sessionId, name: "Ada" }],
    });
    // The id of an ended session still finds the person.
    expect((await admin.data("admin.getPerson", { sessionId })).sessions).toBe(1);
    await admin.data("admin.deleteSession", { sessionId, everywhere: true });
    expect(await isIn(other)).toBe(false);
    expect(kindOf(await admin.call("admin.getPerson", { sessionId }))).toEqual([404, "session_not_found"]);
  });

  test("admin of one workspace cannot end a session that has a role elsewhere, but an admin of all workspaces can", async () => {
    rolesOf({ both: { [shop.id]: "viewer", [bank.id]: "viewer" }, ops: { "*": "admin" }, all: { "*": "viewer" } });
    const admin = await adminOf(shop);
    const foreign = [
      await withGroups("Both", ["both"]),
      await withGroups("Ops", ["ops"]),
      await withGroups("All", ["all"]),
      await signIn(t, { name: "Everyone", role: "viewer" }),
    ];
    for (const person of foreign) {
      const sessionId = await idOf(person);
      for (const everywhere of [false, true]) {
        const refused = await admin.call("admin.deleteSession", { sessionId, everywhere });
        expect(kindOf(refused)).toEqual([403, "forbidden"]);
        expect(JSON.stringify(refused.body)).not.toContain(bank.id);
        const byRootKey = { rootKey: shop.rootKey };
        expect((await t.call("admin.deleteSession", { sessionId, everywhere }, byRootKey)).status).toBe(403);
      }
      expect((await admin.data("admin.getPerson", { sessionId })).openSessions).toMatchObject([{ elsewhere: true }]);
      expect(await isIn(person)).toBe(true);
    }
    const root = await adminOfAll();
    for (const person of foreign) {
      await root.data("admin.deleteSession", { sessionId: await idOf(person), everywhere: true });
      expect(await isIn(person)).toBe(false);
    }
  });

  test("admin of both workspaces of a session can end it, even if the roles file names workspaces that do not exist", async () => {
    rolesOf({
      both: { [shop.id]: "viewer", [bank.id]: "operator", "not-made-yet": "admin", all: "viewer" },
      leads: { [shop.id]: "admin", [bank.id]: "admin" },
    });
    const lead = at(await withGroups("Lead", ["leads"]), shop);
    const person = await withGroups("Both", ["both"]);
    expect(await lead.data("admin.deleteSession", { sessionId: await idOf(person) })).toMatchObject({ sessions: 1 });
    // A workspace whose name looks like a keyword counts like any other.
    const [again, named] = [await withGroups("Both", ["both"]), await t.makeWorkspace()];
    await t.deps.db.query("update workspaces set name = 'all' where id = $1", [named.id]);
    expect((await lead.call("admin.deleteSession", { sessionId: await idOf(again) })).status).toBe(403);
  });

  test("no session of a person is ended if the caller is not allowed to end one of them", async () => {
    rolesOf({ here: { [shop.id]: "viewer" }, both: { [shop.id]: "viewer", [bank.id]: "viewer" } });
    const admin = await adminOf(shop);
    const [own, shared] = [await withGroups("Grace", ["here"]), await withGroups("Grace", ["both"])];
    const sessionId = await idOf(own);
    expect((await admin.call("admin.deleteSession", { sessionId, everywhere: true })).status).toBe(403);
    expect([await isIn(own), await isIn(shared)]).toEqual([true, true]);
    expect(await admin.data("admin.deleteSession", { sessionId })).toMatchObject({ sessions: 1 });
    expect([await isIn(own), await isIn(shared)]).toEqual([false, true]);
  });

  test("person with the same name in another workspace stays signed in and keeps an open link", async () => {
    const admin = await adminOf(shop);
    const twin = (workspace: Workspace) => signIn(t, { name: "Twin", workspaceId: workspace.id });
    const [here, there] = [await twin(shop), await twin(bank)];
    const link = { name: "Twin", role: "viewer" };
    const own = await admin.data("admin.createSignInLink", link);
    const foreign = await (await adminOf(bank)).data("admin.createSignInLink", link);
    const ended = await admin.data("admin.deleteSession", { sessionId: await idOf(here), everywhere: true });
    expect(ended).toEqual({ sessions: 1, links: 1 });
    expect([await isIn(here), await isIn(there)]).toEqual([false, true]);
    expect(kindOf(await followLink(t, own.token))).toEqual([401, "sign_in_failed"]);
    expect((await followLink(t, foreign.token)).status).toBe(200);
  });

  test("links that the ended session created are revoked", async () => {
    const admin = await adminOf(shop);
    const mallory = await signIn(t, { name: "Mallory", workspaceId: shop.id });
    const { token } = await at(mallory, shop).data("admin.createSignInLink", { name: "Spare", role: "admin" });
    expect(await admin.data("admin.deleteSession", { sessionId: await idOf(mallory) })).toEqual({
      sessions: 1,
      links: 1,
    });
    expect(kindOf(await followLink(t, token))).toEqual([401, "sign_in_failed"]);
  });

  test("concurrent calls end a session only once", async () => {
    const admin = await adminOf(shop);
    const sessionId = await idOf(await signIn(t, { name: "Ada", workspaceId: shop.id }));
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => admin.call("admin.deleteSession", { sessionId })),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(404)]);
  });
});

describe("sign-in links", () => {
  const follow = async (token: string): Promise<PersonAtPage> => {
    const session = cookieOf(await followLink(t, token)) ?? "";
    return browserWith(t, session);
  };

  test("link signs a person in once, with its role; lists and the audit log name its creator but never its token", async () => {
    const admin = await adminOf(shop);
    const { linkId, token, expires } = await admin.data("admin.createSignInLink", { name: "Grace", role: "operator" });
    expect(expires - Date.now()).toBeLessThanOrEqual(300_000);
    const links = await admin.data("admin.listSignInLinks");
    const shown = { linkId, name: "Grace", role: "operator", allWorkspaces: false, madeBy: "Admin", expires };
    expect(links).toEqual([{ ...shown, createdAt: expect.any(Number) }]);
    const audit = await t.audit(shop.id);
    expect(audit.at(-1)).toMatchObject({ event: "signInLink.create", actor: { name: "Admin" } });
    expect(JSON.stringify([links, audit, t.logs])).not.toContain(token);
    const grace = await follow(token);
    expect(await admin.data("admin.listSignInLinks")).toEqual([]);
    expect(kindOf(await followLink(t, token))).toEqual([401, "sign_in_failed"]);
    const people = await admin.data("admin.listPeople", { search: "Grace" });
    expect(people).toMatchObject([{ role: "operator", linkMadeBy: "Admin", allWorkspaces: false }]);
    expect(kindOf(await at(grace, shop).call("admin.createSignInLink", { name: "x", role: "viewer" }))).toEqual([
      403,
      "forbidden",
    ]);
  });

  test("revoked link cannot be used, and only the workspace that created a link can revoke it", async () => {
    const [admin, other] = [await adminOf(shop), await adminOf(bank)];
    const { linkId, token } = await admin.data("admin.createSignInLink", { name: "Grace", role: "viewer" });
    expect(await other.data("admin.listSignInLinks")).toEqual([]);
    expect(kindOf(await other.call("admin.deleteSignInLink", { linkId }))).toEqual([404, "sign_in_link_not_found"]);
    await admin.data("admin.deleteSignInLink", { linkId });
    expect(kindOf(await followLink(t, token))).toEqual([401, "sign_in_failed"]);
    expect(kindOf(await admin.call("admin.deleteSignInLink", { linkId }))).toEqual([404, "sign_in_link_not_found"]);
    expect((await t.audit(shop.id)).at(-1)).toMatchObject({
      event: "signInLink.delete",
      targets: [{ type: "signInLink", id: linkId, name: "Grace" }],
    });
  });

  test.each<{ who: string; of: LinkOptions }>([
    { who: "an admin of the workspace", of: { role: "admin" } },
    { who: "an operator of the workspace", of: { role: "operator" } },
    { who: "a viewer of the workspace", of: { role: "viewer" } },
  ])("$who makes no link to all workspaces, and sees and revokes none", async ({ of }) => {
    const person = at(await signIn(t, { ...of, workspaceId: shop.id }), shop);
    const root = await adminOfAll();
    const { linkId } = await root.data("admin.createSignInLink", { name: "Root", role: "viewer", allWorkspaces: true });
    for (const role of ["viewer", "operator", "admin"]) {
      const refused = await person.call("admin.createSignInLink", { name: "x", role, allWorkspaces: true });
      expect(kindOf(refused)).toEqual([403, "forbidden"]);
    }
    expect([403, 404]).toContain((await person.call("admin.deleteSignInLink", { linkId })).status);
    const shown = await person.call("admin.listSignInLinks");
    if (of.role === "admin") expect(shown.body.data).toEqual([]);
    else expect(shown.status).toBe(403);
    expect(await root.data("admin.listSignInLinks")).toMatchObject([{ linkId, allWorkspaces: true }]);
  });

  test("user with the role operator in all workspaces and admin in one cannot create links to all workspaces", async () => {
    rolesOf({ mixed: { "*": "operator", [shop.id]: "admin" } });
    const mixed = at(await withGroups("Mixed", ["mixed"]), shop);
    await mixed.data("admin.createSignInLink", { name: "x", role: "admin" });
    expect(
      (await mixed.call("admin.createSignInLink", { name: "x", role: "viewer", allWorkspaces: true })).status,
    ).toBe(403);
  });

  test("root key can grant only permissions that it holds, and cannot grant a role that spans all workspaces", async () => {
    const call = async (permissions: readonly string[], body: object) => {
      const rootKey = await t.rootKey(permissions, { workspaceId: shop.id, name: "ci" });
      return t.call("admin.createSignInLink", { name: "Grace", ...body }, { rootKey });
    };
    const refused = await call(["workspace.*.create_sign_in_link"], { role: "viewer" });
    expect(kindOf(refused)).toEqual([403, "forbidden"]);
    expect(refused.body.error.detail).toContain("api.*.read_api");
    const all = { rootKey: t.workspace.rootKey };
    const everywhere = { name: "Grace", role: "viewer", allWorkspaces: true };
    expect(kindOf(await t.call("admin.createSignInLink", everywhere, all))).toEqual([403, "forbidden"]);
    await t.data("admin.createSignInLink", { name: "Grace", role: "admin" }, { rootKey: shop.rootKey });
    expect(await (await adminOf(shop)).data("admin.listSignInLinks")).toMatchObject([{ madeBy: "root key root key" }]);
  });

  test("session opened by a link cannot create sessions that outlast it, even through a chain of links", async () => {
    const first = await signIn(t, { name: "First", workspaceId: shop.id });
    const end = Date.now() + 120_000;
    await t.deps.db.query("update sessions set expires_at = $2 where id = $1", [await idOf(first), end]);
    let person = first;
    for (const name of ["Second", "Third"]) {
      const { token, expires } = await at(person, shop).data("admin.createSignInLink", { name, role: "admin" });
      expect(expires).toBe(end);
      person = await follow(token);
      const { rows } = await t.deps.db.query("select expires_at from sessions where id = $1", [await idOf(person)]);
      expect(rows).toEqual([{ expires_at: end }]);
    }
    rolesOf({ team: { [shop.id]: "admin" } });
    const grace = at(await withGroups("Grace", ["team"]), shop);
    const { token } = await grace.data("admin.createSignInLink", { name: "Fourth", role: "admin" });
    const fourth = await idOf(await follow(token));
    const { rows } = await t.deps.db.query("select expires_at - created_at as life from sessions where id = $1", [
      fourth,
    ]);
    expect(Number(rows[0].life)).toBe(DEFAULT_SESSION_TIMES.maxMs);
  });

  test.each([
    { name: "" },
    { name: "  " },
    { name: "x".repeat(256) },
    { role: "owner" },
    { workspaceId: "ws_1" },
    { allWorkspaces: 1 },
  ])("link with %j is rejected", async (wrong) => {
    const reply = await (await adminOf(shop)).call("admin.createSignInLink", {
      name: "Grace",
      role: "viewer",
      ...wrong,
    });
    expect(kindOf(reply)).toEqual([400, "invalid_input"]);
  });
});
