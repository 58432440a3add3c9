import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { followRoles } from "../sign-in/roles-file.ts";
import { buildTestApp, type Reply, type TestApp } from "./app.ts";
import { browserWith, cookieOf, followLink, makeLink, OWN_PAGE, post, signIn } from "./people.ts";

/* Sessions when their dependencies fail: the clock, Postgres, the roles file, the browser, or the order of requests. */

const HOUR_MS = 3_600_000;
const NO_BOUNDS = { windowMs: 60_000, address: 1e6, all: 1e6, failed: 0, nowMs: Date.now };

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp({ signIn: { bounds: NO_BOUNDS } });
});
afterAll(() => t.close());

const kindOf = ({ status, body }: Reply) => [status, body.error?.type.split("/").at(-1)];
const whoami = "workspaces.getWorkspace";

describe("a clock", () => {
  test.each([-48, -3, 3, 48])(
    "clock that was wrong by %i hours leaves sessions unchanged once it is corrected",
    async (hours) => {
      const person = await signIn(t);
      t.advance(hours * HOUR_MS);
      const wrong = await person.call(whoami);
      expect(kindOf(wrong)).toEqual(hours < 0 ? [200, undefined] : [401, "session_ended"]);
      t.advance(-hours * HOUR_MS);
      expect((await person.call(whoami)).status).toBe(200);
      t.advance(12 * HOUR_MS + 60_000);
      expect(kindOf(await person.call(whoami))).toEqual([401, "session_ended"]);
      t.advance(-12 * HOUR_MS - 60_000);
    },
  );

  test("forward clock step does not extend a session beyond its maximum", async () => {
    const person = await signIn(t);
    t.advance(1.5 * HOUR_MS);
    expect((await person.call(whoami)).status).toBe(200);
    t.advance(-1.5 * HOUR_MS);
    for (let hour = 1; hour < 12; hour++) {
      t.advance(HOUR_MS);
      expect((await person.call(whoami)).status).toBe(200);
    }
    t.advance(HOUR_MS + 1000);
    expect((await person.call(whoami)).body.error.detail).toContain("maximum lifetime");
    t.advance(-12 * HOUR_MS - 1000);
  });

  test("backward clock step revives no ended session or used link", async () => {
    const link = await makeLink(t);
    const person = browserWith(t, cookieOf(await followLink(t, link)) ?? "");
    await person.signOut();
    t.advance(-HOUR_MS);
    expect(kindOf(await person.call(whoami))).toEqual([401, "session_ended"]);
    expect(kindOf(await followLink(t, link))).toEqual([401, "sign_in_failed"]);
    t.advance(HOUR_MS);
  });
});

describe("Postgres is unavailable", () => {
  test("Postgres outage prevents sign-in and sign-out and leaves sessions unchanged", async () => {
    const away = await buildTestApp({ signIn: { bounds: NO_BOUNDS } });
    const person = await signIn(away);
    const link = await makeLink(away);
    const cookie = `__Host-postern=${person.token}`;
    const { db } = away.deps;
    const [query, connect] = [db.query.bind(db), db.connect.bind(db)];
    const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:5432"), { code: "ECONNREFUSED" });
    const fail = () => Promise.reject(refused);
    Object.assign(db, { query: fail, connect: fail });
    const replies = [
      await followLink(away, link),
      await person.call(whoami),
      await person.signOut(),
      await person.signOut(true),
    ];
    const session = await away.app.inject({ url: "/dashboard/session", headers: { ...OWN_PAGE, cookie } });
    Object.assign(db, { query, connect });
    for (const reply of replies) {
      expect(kindOf(reply)).toEqual([500, "service_unavailable"]);
      expect(reply.headers["set-cookie"]).toBeUndefined();
    }
    expect([session.statusCode, session.headers["set-cookie"]]).toEqual([500, undefined]);
    expect((await person.call(whoami)).status).toBe(200);
    expect((await followLink(away, link)).status).toBe(200);
    await away.close();
  });

  test("sign-in link stays valid when its session could not be stored", async () => {
    const link = await makeLink(t);
    await t.deps.db.query("alter table sessions rename to sessions_away");
    const failed = await followLink(t, link);
    await t.deps.db.query("alter table sessions_away rename to sessions");
    expect([failed.status, cookieOf(failed)]).toEqual([500, undefined]);
    expect((await followLink(t, link)).status).toBe(200);
  });
});

describe("a link", () => {
  test("sign-in link of a disabled workspace signs the user in, but without access", async () => {
    const { id } = await t.makeWorkspace();
    const link = await makeLink(t, { workspaceId: id });
    await t.deps.db.query("update workspaces set enabled = false where id = $1", [id]);
    const person = browserWith(t, cookieOf(await followLink(t, link)) ?? "");
    expect(kindOf(await person.call(whoami))).toEqual([403, "forbidden"]);
  });

  test("sign-in link of a deleted workspace never gives access to a new workspace with the same name", async () => {
    const { id } = await t.makeWorkspace();
    await t.deps.db.query("update workspaces set name = 'taken-over' where id = $1", [id]);
    const link = await makeLink(t, { workspaceId: id });
    await t.deps.db.query("update workspaces set deleted_at = 1, name = 'gone' where id = $1", [id]);
    const next = await t.makeWorkspace();
    await t.deps.db.query("update workspaces set name = 'taken-over' where id = $1", [next.id]);
    const person = browserWith(t, cookieOf(await followLink(t, link)) ?? "");
    for (const workspace of [undefined, id, next.id, "taken-over"]) {
      const reply = await person.call(whoami, {}, workspace === undefined ? {} : { "postern-workspace": workspace });
      expect(kindOf(reply)).toEqual([403, "no_role"]);
    }
  });

  test("sign-in link of a workspace still opens it after the workspace is renamed", async () => {
    const { id } = await t.makeWorkspace();
    const person = await signIn(t, { workspaceId: id, role: "viewer" });
    await t.deps.db.query("update workspaces set name = 'new-name' where id = $1", [id]);
    expect((await person.call(whoami, {}, { "postern-workspace": "new-name" })).body.data.id).toBe(id);
  });
});

describe("the roles of a group", () => {
  const ROLES = `groups: {team: {"*": viewer}}`;
  let text = ROLES;
  let of: TestApp;
  beforeAll(async () => {
    of = await buildTestApp({ signIn: { bounds: NO_BOUNDS, rolesOfGroups: followRoles(() => text) } });
  });
  afterAll(() => of.close());

  /** Signs in an OIDC user whose groups are stored with the session. */
  async function withGroups(...groups: string[]) {
    const person = await signIn(of, { name: groups.join() });
    await of.deps.db.query(
      "update sessions set signed_in_by = 'oidc', issuer = 'https://id.test', roles = '[]', groups = $2 where name = $1",
      [groups.join(), JSON.stringify(groups)],
    );
    return person;
  }

  test("user whose group is removed from the roles file loses access with the next call", async () => {
    const person = await withGroups("team");
    expect((await person.call(whoami)).status).toBe(200);
    text = "groups: {}";
    expect(kindOf(await person.call(whoami))).toEqual([403, "no_role"]);
    text = ROLES;
    expect((await person.call(whoami)).status).toBe(200);
  });

  test.each(["__proto__", "constructor", "toString", "hasOwnProperty", "*", "team ", "TEAM", "team\u200b", ""])(
    "group %j missing from the roles file has no roles",
    async (group) => {
      expect(kindOf(await (await withGroups(group)).call(whoami))).toEqual([403, "no_role"]);
    },
  );

  test.each(["__proto__", "constructor"])(
    "group roles of a workspace named %j apply to no other workspace",
    async (workspace) => {
      text = `groups: {odd: {"${workspace}": admin}}`;
      expect(kindOf(await (await withGroups("odd")).call(whoami))).toEqual([403, "no_role"]);
      text = ROLES;
    },
  );
});

describe("a header from an untrusted client", () => {
  test("forwarding headers of an untrusted client do not change the scheme or host", async () => {
    for (const trustedProxies of [undefined, ["127.0.0.1"]]) {
      const app = await buildTestApp({ signIn: { bounds: NO_BOUNDS }, ...(trustedProxies && { trustedProxies }) });
      const forwarded = {
        ...OWN_PAGE,
        host: "postern.example.com",
        "x-forwarded-proto": "https",
        "x-forwarded-host": "127.0.0.1:8080",
        forwarded: "proto=https;host=127.0.0.1:8080",
      };
      for (const origin of ["https://postern.example.com", "http://127.0.0.1:8080"]) {
        const reply = await followLink(app, await makeLink(app), { ...forwarded, origin });
        expect([reply.status, cookieOf(reply)]).toEqual([412, undefined]);
      }
      await app.close();
    }
  });

  test("untrusted X-Forwarded-For does not change the throttled address", async () => {
    const bounds = { windowMs: 60_000, address: 60, all: 1_000, failed: 5, nowMs: () => 0 };
    const app = await buildTestApp({ signIn: { bounds } });
    const replies = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        followLink(app, "a".repeat(43), {
          ...OWN_PAGE,
          "x-forwarded-for": `192.0.2.${i}`,
          "x-real-ip": `192.0.2.${i}`,
        }),
      ),
    );
    const count = (kind: string) => replies.filter((reply) => kindOf(reply)[1] === kind).length;
    expect([count("sign_in_failed"), count("sign_in_limited")]).toEqual([60, 40]);
    expect(kindOf(await followLink(app, await makeLink(app)))).toEqual([429, "sign_in_limited"]);
    await app.close();
  });

  test.each([
    "unknown",
    "192.0.2.1.evil",
    "::ffff:192.0.2.1",
    "[2001:db8::1]:80",
    "x".repeat(4_000),
    "192.0.2.1, ,",
    "\u00ff",
  ])("trusted proxy may forward any client address: %j", async (address) => {
    const app = await buildTestApp({ trustedProxies: ["127.0.0.1"], signIn: { bounds: NO_BOUNDS } });
    const headers = { ...OWN_PAGE, "x-forwarded-for": address };
    expect((await followLink(app, await makeLink(app), headers)).status).toBe(200);
    expect(kindOf(await followLink(app, "a".repeat(43), headers))).toEqual([401, "sign_in_failed"]);
    await app.close();
  });
});

test("100 users who sign in concurrently get their own sessions", async () => {
  const app = await buildTestApp({ trustedProxies: ["127.0.0.1"] });
  const links = await Promise.all(Array.from({ length: 100 }, (_, i) => makeLink(app, { name: `person ${i}` })));
  const replies = await Promise.all(
    links.map((link, i) => followLink(app, link, { ...OWN_PAGE, "x-forwarded-for": `192.0.2.${i}` })),
  );
  expect(replies.map(({ status }) => status)).toEqual(Array(100).fill(200));
  const tokens = replies.map((reply) => cookieOf(reply) ?? "");
  expect(new Set(tokens).size).toBe(100);
  for (const i of [0, 50, 99]) {
    const cookie = `__Host-postern=${tokens[i]}`;
    const { data } = (await app.app.inject({ url: "/dashboard/session", headers: { ...OWN_PAGE, cookie } })).json();
    expect(data.session.person.name).toBe(`person ${i}`);
  }
  await app.close();
});

describe("a cookie", () => {
  test.each([
    ["without its prefix", (token: string) => `postern=${token}`],
    ["with a prefix that a page over http can set", (token: string) => `__Secure-postern=${token}`],
    ["in other letters", (token: string) => `__HOST-POSTERN=${token}`],
    ["with its name encoded", (token: string) => `__Host%2Dpostern=${token}`],
    ["of the sign-in", (token: string) => `__Host-postern-sign-in=${token}`],
    ["in another's value", (token: string) => `a="__Host-postern=${token}"`],
    [
      "with its value encoded",
      (token: string) => `__Host-postern=%${token.charCodeAt(0).toString(16)}${token.slice(1)}`,
    ],
    ["behind one that is no token", (token: string) => `__Host-postern=; __Host-postern=${token}`],
  ])("session cookie %s is rejected", async (_, cookieWith) => {
    const { token } = await signIn(t);
    const reply = await post(t, `/v2/${whoami}`, {}, { ...OWN_PAGE, cookie: cookieWith(token) });
    expect(kindOf(reply)).toEqual([401, "unauthorized"]);
  });

  test("session cookie is found among the maximum number of cookies", async () => {
    const { token } = await signIn(t);
    const others = Array.from({ length: 400 }, (_, i) => `c${i}=${"x".repeat(20)}`).join("; ");
    const reply = await post(t, `/v2/${whoami}`, {}, { ...OWN_PAGE, cookie: `${others}; __Host-postern=${token}` });
    expect(reply.status).toBe(200);
  });

  test.each(["1, 1", "1,1", "1;1", "01", "1.0", "１"])(
    "call with a session cookie and the header Postern-Dashboard: %s is unauthenticated",
    async (value) => {
      const person = await signIn(t);
      const reply = await person.call(whoami, {}, { "postern-dashboard": Buffer.from(value).toString("latin1") });
      expect(kindOf(reply)).toEqual([403, "cross_origin_request"]);
    },
  );
});
