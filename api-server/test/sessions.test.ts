import { Registry } from "prom-client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hashKey } from "../../core/keys/key-string.ts";
import { DEFAULT_SESSION_TIMES } from "../../core/sessions/session-end.ts";
import { createLoopFailures } from "../background/loop.ts";
import { Retention } from "../background/retention.ts";
import { createFairScheduler } from "../background/workspace-turns.ts";
import { buildTestApp, type Reply, type TestApp } from "./app.ts";
import { browserWith, cookieOf, followLink, makeLink, ORIGIN, OWN_PAGE, post, signIn } from "./people.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp({
    signIn: { bounds: { windowMs: 60_000, address: 1e6, all: 1e6, failed: 0, nowMs: Date.now } },
  });
});
afterAll(() => t.close());

const kindOf = ({ body }: Reply): string | undefined => body.error?.type.split("/").at(-1);
const sessionRow = async (token: string) =>
  (await t.deps.db.query("select * from sessions where token_hash = $1", [hashKey(token)])).rows[0];
const whoami = "workspaces.getWorkspace";

describe("a link", () => {
  test("sign-in link opens a session, and the database stores no token", async () => {
    const link = await makeLink(t, { name: "Ada Löve 🔑", workspaceId: t.workspace.id, role: "operator" });
    const reply = await followLink(t, link);
    expect(reply.status).toBe(200);
    const token = cookieOf(reply) ?? "";
    expect(reply.headers["set-cookie"]).toBe(`__Host-postern=${token}; Path=/; Secure; HttpOnly; SameSite=Strict`);
    expect(reply.headers["cache-control"]).toBe("no-store");
    const row = await sessionRow(token);
    expect(row).toMatchObject({
      issuer: "postern:link",
      subject: "Ada Löve 🔑",
      signed_in_by: "link",
      roles: [{ workspace: t.workspace.id, role: "operator" }],
      ended_at: null,
    });
    const { rows } = await t.deps.db.query(
      "select to_jsonb(s)::text as row from sessions s union all select to_jsonb(l)::text from sign_in_links l",
    );
    for (const secret of [token, link]) expect(JSON.stringify(rows)).not.toContain(secret);
  });

  test("sign-in link works only once", async () => {
    const link = await makeLink(t);
    expect((await followLink(t, link)).status).toBe(200);
    const again = await followLink(t, link);
    expect([again.status, kindOf(again), cookieOf(again)]).toEqual([401, "sign_in_failed", undefined]);
  });

  test("sign-in link opens only one session for 50 concurrent calls", async () => {
    const link = await makeLink(t, { name: "raced" });
    const replies = await Promise.all(Array.from({ length: 50 }, () => followLink(t, link)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(replies.filter((reply) => kindOf(reply) === "sign_in_failed")).toHaveLength(49);
    const { rowCount } = await t.deps.db.query("select from sessions where name = 'raced'");
    expect(rowCount).toBe(1);
  });

  test("sign-in link is valid through its last millisecond", async () => {
    let nowMs = 1_800_000_000_000;
    const clock = await buildTestApp({ deps: () => ({ nowMs: () => nowMs }) });
    const [one, other] = [await makeLink(clock), await makeLink(clock)];
    nowMs += 5 * 60_000;
    expect((await followLink(clock, one)).status).toBe(200);
    nowMs += 1;
    expect(kindOf(await followLink(clock, other))).toBe("sign_in_failed");
    await clock.close();
  });

  test.each(["", "short", "a".repeat(43), "é".repeat(43)])("sign-in link with token %j is rejected", async (link) => {
    expect(kindOf(await followLink(t, link))).toBe("sign_in_failed");
  });

  test.each([
    ["{}"],
    ["[]"],
    ["null"],
    ['{"token":1}'],
    ['{"token":"a","more":1}'],
    ["{"],
    [`{"token":"${"a".repeat(101)}"}`],
  ])("sign-in body %s is rejected, and the error does not repeat it", async (body) => {
    const reply = await post(t, "/dashboard/auth/link", body, OWN_PAGE);
    expect([reply.status, kindOf(reply)]).toEqual([400, "invalid_input"]);
  });

  test("audit log names who created and who used a sign-in link", async () => {
    const { id } = await t.makeWorkspace();
    const person = await signIn(t, { name: "Grace", workspaceId: id, role: "viewer" });
    await person.signOut();
    const session = await sessionRow(person.token);
    const rows = await t.audit(id);
    expect(rows.map(({ event, actor }) => [event, actor.type, actor.name])).toEqual([
      ["signInLink.create", "cli", "root@host"],
      ["session.create", "user", "Grace"],
      ["session.delete", "user", "Grace"],
    ]);
    expect(rows[1]).toMatchObject({
      actor: { id: "Grace", meta: { issuer: "postern:link", session: session.id } },
      targets: [{ type: "session", id: session.id, name: "Grace" }],
      remote_ip: "127.0.0.1",
    });
    expect(JSON.stringify(rows)).not.toContain(person.token);
  });
});

describe("signing in", () => {
  test("sign-in ends the session of the existing cookie", async () => {
    const planted = await signIn(t, { name: "Mallory" });
    const reply = await followLink(t, await makeLink(t), { ...OWN_PAGE, cookie: `__Host-postern=${planted.token}` });
    expect(cookieOf(reply)).not.toBe(planted.token);
    expect(kindOf(await planted.call(whoami))).toBe("session_ended");
    expect((await browserWith(t, cookieOf(reply) ?? "").call(whoami)).status).toBe(200);
  });

  test("sign-in never uses a session token that the client chose", async () => {
    const chosen = "c".repeat(43);
    const reply = await followLink(t, await makeLink(t), { ...OWN_PAGE, cookie: `__Host-postern=${chosen}` });
    expect(cookieOf(reply)).not.toBe(chosen);
    expect(kindOf(await browserWith(t, chosen).call(whoami))).toBe("session_ended");
  });

  test("failed sign-in keeps the existing session", async () => {
    const person = await signIn(t);
    await followLink(t, "a".repeat(43), { ...OWN_PAGE, cookie: `__Host-postern=${person.token}` });
    expect((await person.call(whoami)).status).toBe(200);
  });

  test("sign-in over plain HTTP is rejected with a reason", async () => {
    const at = (host: string) => ({ ...OWN_PAGE, host, origin: `http://${host}` });
    const reply = await followLink(t, await makeLink(t), at("postern.example.com"));
    expect([reply.status, kindOf(reply), cookieOf(reply)]).toEqual([412, "precondition_failed", undefined]);
    expect(reply.body.error.detail).toContain("--dashboard-url");
    for (const host of ["localhost", "localhost:9", "[::1]:8080", "127.0.0.1"]) {
      expect((await followLink(t, await makeLink(t), at(host))).status).toBe(200);
    }
    for (const host of ["localhost.example.com", "127.0.0.1.example.com", "127.0.0.2", "10.0.0.1:8080"]) {
      expect((await followLink(t, await makeLink(t), at(host))).status).toBe(412);
    }
  });
});

describe("a call with a session", () => {
  test("session call has the permissions of its user's role, and the audit log names the user", async () => {
    const { id } = await t.makeWorkspace();
    const person = await signIn(t, { name: "Ada", workspaceId: id, role: "operator" });
    const made = await person.call("apis.createApi", { name: "shop" });
    expect(made.status).toBe(200);
    expect(made.headers["cache-control"]).toBe("no-store");
    const [row] = (await t.audit(id)).filter(({ event }) => event === "api.create");
    const session = await sessionRow(person.token);
    expect(row?.actor).toEqual({
      type: "user",
      id: "Ada",
      name: "Ada",
      meta: { issuer: "postern:link", session: session.id },
    });
    const refused = await person.call("apis.deleteApi", { apiId: made.body.data.apiId });
    expect([refused.status, kindOf(refused)]).toEqual([403, "forbidden"]);
    expect(refused.body.error.detail).toBe(
      `The role operator lacks the permission api.*.delete_api or api.${made.body.data.apiId}.delete_api.`,
    );
  });

  test("session call acts in the named workspace, or in the first workspace by default", async () => {
    const [one, other] = [await t.makeWorkspace(), await t.makeWorkspace()];
    await t.deps.db.query("update workspaces set name = 'zeta' where id = $1", [one.id]);
    await t.deps.db.query("update workspaces set name = 'alpha' where id = $1", [other.id]);
    const person = await signIn(t);
    const at = async (workspace?: string) =>
      (await person.call(whoami, {}, workspace === undefined ? {} : { "postern-workspace": workspace })).body.data
        ?.name;
    expect([await at(one.id), await at("zeta"), await at("alpha"), await at()]).toEqual([
      "zeta",
      "zeta",
      "alpha",
      "alpha",
    ]);
  });

  test("session call to an inaccessible workspace gets the same rejection whether or not that workspace exists", async () => {
    const [own, foreign] = [await t.makeWorkspace(), await t.makeWorkspace()];
    const person = await signIn(t, { workspaceId: own.id });
    const asked = async (workspace: string) => {
      const reply = await person.call(whoami, {}, { "postern-workspace": workspace });
      return [reply.status, kindOf(reply), reply.body.error.detail.replace(workspace, "…")];
    };
    expect(await asked(foreign.id)).toEqual(await asked("ws_missing"));
    expect((await asked(foreign.id)).slice(0, 2)).toEqual([403, "no_role"]);
    expect((await person.call(whoami)).body.data.id).toBe(own.id);
  });

  test.each([[""], ["w".repeat(256)]])("session call with workspace %j is rejected", async (workspace) => {
    const reply = await (await signIn(t)).call(whoami, {}, { "postern-workspace": workspace });
    expect([reply.status, kindOf(reply)]).toEqual([400, "invalid_input"]);
  });

  test("session call to a disabled workspace gets 403, and session calls count toward the quota", async () => {
    const { id } = await t.makeWorkspace();
    const person = await signIn(t, { workspaceId: id });
    await t.deps.db.query("update workspaces set quota_per_minute = 0 where id = $1", [id]);
    expect(kindOf(await person.call(whoami))).toBe("workspace_rate_limited");
    await t.deps.db.query("update workspaces set quota_per_minute = null, enabled = false where id = $1", [id]);
    const disabled = await person.call(whoami);
    expect([disabled.status, disabled.body.error.detail]).toEqual([403, "The workspace is disabled."]);
  });

  test("session call with an Authorization header uses only that header", async () => {
    const person = await signIn(t);
    const { id, rootKey } = await t.makeWorkspace();
    // A root key needs neither the dashboard header nor an origin.
    const cookie = `__Host-postern=${person.token}`;
    const own = await post(t, `/v2/${whoami}`, {}, { cookie, authorization: `Bearer ${rootKey}` });
    expect(own.body.data.id).toBe(id);
    for (const authorization of ["Bearer wrong", "", "Basic x"]) {
      expect(kindOf(await person.call(whoami, {}, { authorization }))).toBe("unauthorized");
    }
  });

  test("session call requires exactly the headers of the OpenAPI document", async () => {
    const { token } = await signIn(t);
    const { security, components } = (await t.app.inject({ url: "/openapi.json" })).json();
    const [, ofPersons] = security;
    const values: Readonly<Record<string, string>> = { "__Host-postern": token, "Postern-Dashboard": "1" };
    const named = Object.keys(ofPersons).map((scheme) => components.securitySchemes[scheme]);
    expect(named.map(({ in: place, name }) => [place, name])).toEqual([
      ["cookie", "__Host-postern"],
      ["header", "Postern-Dashboard"],
    ]);
    const send = (schemes: readonly { in: string; name: string }[]) =>
      post(
        t,
        `/v2/${whoami}`,
        {},
        {
          host: OWN_PAGE.host,
          origin: ORIGIN,
          ...Object.fromEntries(
            schemes.map(({ in: place, name }) =>
              place === "cookie" ? ["cookie", `${name}=${values[name]}`] : [name, values[name]],
            ),
          ),
        },
      );
    expect((await send(named)).status).toBe(200);
    expect(kindOf(await send(named.slice(0, 1)))).toBe("cross_origin_request");
    expect(kindOf(await send(named.slice(1)))).toBe("unauthorized");
  });

  test("v1 does not accept session cookies", async () => {
    const person = await signIn(t);
    const { apiId } = await t.data("apis.createApi", { name: "old" });
    const cookie = `__Host-postern=${person.token}`;
    const reply = await t.app.inject({ url: `/v1/apis.getApi?apiId=${apiId}`, headers: { ...OWN_PAGE, cookie } });
    expect([reply.statusCode, reply.json().error.code]).toEqual([401, "UNAUTHORIZED"]);
  });

  test("large body is accepted with a valid session cookie but not with an invalid one", async () => {
    const person = await signIn(t);
    const large = { name: "x".repeat(300_000) };
    expect((await person.call("apis.createApi", large)).status).toBe(400);
    const stranger = await browserWith(t, "s".repeat(43)).call("apis.createApi", large);
    expect([stranger.status, kindOf(stranger)]).toEqual([401, "session_ended"]);
    const foreign = await person.call("apis.createApi", large, { origin: "https://evil.test" });
    expect(kindOf(foreign)).toBe("cross_origin_request");
  });

  test("call without a valid cookie name gets the same 401 as a call without an Authorization header", async () => {
    for (const cookie of [
      "",
      "postern=a",
      "__Host-postern",
      "__Host-postern=",
      "__Host-postern=short",
      "x__Host-postern=a",
    ]) {
      const reply = await post(t, `/v2/${whoami}`, {}, { ...OWN_PAGE, cookie });
      expect([reply.status, kindOf(reply)]).toEqual([401, "unauthorized"]);
    }
  });
});

describe("a session ends", () => {
  const HOUR_MS = 3_600_000;
  const START_MS = 1_800_000_000_000;
  const { idleMs, maxMs } = DEFAULT_SESSION_TIMES;

  test("session ends after its idle timeout, which each use extends", async () => {
    let nowMs = START_MS;
    const clock = await buildTestApp({ deps: () => ({ nowMs: () => nowMs }) });
    const person = await signIn(clock);
    nowMs += idleMs;
    expect((await person.call(whoami)).status).toBe(200);
    nowMs += idleMs;
    expect((await person.call(whoami)).status).toBe(200);
    nowMs += idleMs + 1;
    const ended = await person.call(whoami);
    expect([ended.status, kindOf(ended)]).toEqual([401, "session_ended"]);
    expect(ended.body.error.detail).toContain("not used for a while");
    await clock.close();
  });

  test("session ends after its maximum lifetime even when used", async () => {
    let nowMs = START_MS;
    const clock = await buildTestApp({ deps: () => ({ nowMs: () => nowMs }) });
    const person = await signIn(clock);
    for (; nowMs < START_MS + maxMs; nowMs += HOUR_MS) expect((await person.call(whoami)).status).toBe(200);
    nowMs = START_MS + maxMs;
    expect((await person.call(whoami)).status).toBe(200);
    nowMs += 1;
    expect((await person.call(whoami)).body.error.detail).toContain("maximum lifetime");
    await clock.close();
  });

  test("time of the last session use is written at most once per minute", async () => {
    let nowMs = START_MS;
    const clock = await buildTestApp({ deps: () => ({ nowMs: () => nowMs }) });
    const person = await signIn(clock);
    const seen = async () => (await clock.deps.db.query("select last_seen_at from sessions")).rows[0].last_seen_at;
    nowMs += 60_000;
    await person.call(whoami);
    expect(await seen()).toBe(START_MS);
    nowMs += 1;
    await person.call(whoami);
    expect(await seen()).toBe(START_MS + 60_001);
    await clock.close();
  });

  test("sign-out ends the session, removes the cookie and can be repeated", async () => {
    const [person, other] = [await signIn(t, { name: "Out" }), await signIn(t, { name: "Out" })];
    const reply = await person.signOut();
    expect(reply.headers["set-cookie"]).toBe("__Host-postern=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Strict");
    const ended = await person.call(whoami);
    expect([kindOf(ended), ended.body.error.detail]).toEqual([
      "session_ended",
      "The session was signed out. Sign in again.",
    ]);
    expect((await other.call(whoami)).status).toBe(200);
    expect((await person.signOut()).status).toBe(200);
  });

  test("signing out everywhere ends all sessions of that user and of no other", async () => {
    const [here, there, someone] = [
      await signIn(t, { name: "Everywhere" }),
      await signIn(t, { name: "Everywhere" }),
      await signIn(t, { name: "Someone" }),
    ];
    await here.signOut(true);
    expect([kindOf(await here.call(whoami)), kindOf(await there.call(whoami))]).toEqual([
      "session_ended",
      "session_ended",
    ]);
    expect((await someone.call(whoami)).status).toBe(200);
  });

  test("sign-out with an old cookie ends no other session", async () => {
    const [old, fresh] = [await signIn(t, { name: "Old" }), await signIn(t, { name: "Old" })];
    await t.deps.db.query("update sessions set expires_at = 1 where token_hash = $1", [hashKey(old.token)]);
    await old.signOut(true);
    expect((await fresh.call(whoami)).status).toBe(200);
  });

  test("expired sessions, links and started sign-ins are deleted after a day", async () => {
    let nowMs = START_MS;
    const clock = await buildTestApp({ deps: () => ({ nowMs: () => nowMs }) });
    await signIn(clock);
    await clock.deps.db.query("insert into sign_in_flows values ('h', 's', 'n', 'v', '/dashboard/', $1)", [
      START_MS + maxMs,
    ]);
    await clock.deps.db.query("update sign_in_links set expires_at = $1", [START_MS + maxMs]);
    const counts = async () =>
      (
        await clock.deps.db.query(
          "select (select count(*) from sessions) s, (select count(*) from sign_in_links) l, (select count(*) from sign_in_flows) f",
        )
      ).rows[0];
    const log = clock.deps.log;
    const metrics = new Registry();
    const runFairly = createFairScheduler({ loop: "retention", log, failures: createLoopFailures(metrics) });
    const retention = new Retention({
      db: clock.deps.db,
      nowMs: () => nowMs,
      days: { audit: 0, deleted: 0 },
      runFairly,
      metrics,
    });
    nowMs += maxMs + 24 * HOUR_MS;
    await retention.round();
    expect(await counts()).toEqual({ s: 1, l: 1, f: 1 });
    nowMs += HOUR_MS;
    await retention.round();
    expect(await counts()).toEqual({ s: 0, l: 0, f: 0 });
    await clock.close();
  });
});

describe("session information for the dashboard", () => {
  const get = async (headers: Record<string, string | undefined>, of = t): Promise<Reply> => {
    const sent = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
    const response = await of.app.inject({ url: "/dashboard/session", headers: sent as Record<string, string> });
    return { status: response.statusCode, headers: response.headers, body: response.json() };
  };
  // A browser sends no Origin with a same-origin GET.
  const ownGet = { ...OWN_PAGE, origin: undefined };
  const withCookie = (token: string) => ({ ...ownGet, cookie: `__Host-postern=${token}` });

  test("dashboard session information is empty without a signed-in user", async () => {
    const reply = await get(ownGet);
    expect([reply.status, reply.body.data]).toEqual([200, { session: null, ended: null }]);
    expect(reply.headers["cache-control"]).toBe("no-store");
  });

  test("dashboard session information includes why the session ended", async () => {
    const person = await signIn(t);
    await person.signOut();
    const { body } = await get(withCookie(person.token));
    expect(body.data).toEqual({ session: null, ended: "The session was signed out. Sign in again." });
  });

  test("dashboard session information has user, workspaces, roles and sessions without secrets", async () => {
    const { id } = await t.makeWorkspace();
    const name = "Two Browsers";
    const [here, there] = [await signIn(t, { name, workspaceId: id, role: "viewer" }), await signIn(t, { name })];
    const { body } = await get(withCookie(here.token));
    expect(body.data.session).toMatchObject({
      person: { name, email: null, signedInBy: "link", groups: [] },
      workspaces: [{ id, name: id, enabled: true, role: "viewer" }],
      hasMoreWorkspaces: false,
      isInstallationAdmin: false,
      sessions: [{ isThis: false }, { isThis: true, address: "127.0.0.1" }],
    });
    for (const { token } of [here, there]) {
      expect(JSON.stringify(body)).not.toContain(token);
      expect(JSON.stringify(body)).not.toContain(hashKey(token));
    }
    await t.deps.db.query("update workspaces set enabled = false where id = $1", [id]);
    const disabled = await get(withCookie(here.token));
    expect(disabled.body.data.session.workspaces).toEqual([{ id, name: id, enabled: false, role: "viewer" }]);
    const admin = await get(withCookie(there.token));
    expect(admin.body.data.session.isInstallationAdmin).toBe(true);
    expect(admin.body.data.session.workspaces.length).toBeGreaterThan(1);
  });

  test("dashboard session information is not readable cross-site", async () => {
    const person = await signIn(t);
    for (const headers of [
      { "postern-dashboard": undefined },
      { "sec-fetch-site": "cross-site" },
      { origin: "https://evil.test" },
    ]) {
      expect(kindOf(await get({ ...withCookie(person.token), ...headers }))).toBe("cross_origin_request");
    }
  });

  test("background dashboard polling does not extend the session", async () => {
    let nowMs = 1_800_000_000_000;
    const clock = await buildTestApp({ deps: () => ({ nowMs: () => nowMs }) });
    const person = await signIn(clock);
    for (let passedMs = 0; passedMs < DEFAULT_SESSION_TIMES.idleMs; passedMs += 600_000) {
      nowMs += 600_000;
      expect((await get(withCookie(person.token), clock)).body.data.session).not.toBeNull();
      expect((await person.call(whoami, {}, { "postern-unattended": "1" })).status).toBe(200);
    }
    nowMs += 1;
    expect((await get(withCookie(person.token), clock)).body.data).toMatchObject({ session: null });
    expect(kindOf(await person.call(whoami))).toBe("session_ended");
    await clock.close();
  });

  test("dashboard session information includes available sign-in methods", async () => {
    const options = async (host: string) =>
      (await t.app.inject({ url: "/dashboard/auth/options", headers: { host } })).json().data;
    expect(await options("127.0.0.1:8080")).toEqual({ problem: null, provider: null });
    expect((await options("postern.example.com")).problem).toContain("plain http");
  });
});

describe("cross-site requests", () => {
  const withoutHeader = { "postern-dashboard": undefined };
  test.each([
    [
      "a form of another site",
      { origin: "https://evil.test", "sec-fetch-site": "cross-site", ...withoutHeader, "content-type": "text/plain" },
    ],
    ["a script without the header", withoutHeader],
    ["another value of the header", { "postern-dashboard": "true" }],
    ["another origin", { origin: "https://evil.test", "sec-fetch-site": "cross-site" }],
    ["another port of this host", { origin: "http://127.0.0.1:9090", "sec-fetch-site": "same-site" }],
    ["another scheme", { origin: "https://127.0.0.1:8080" }],
    ["an origin that begins alike", { origin: `${ORIGIN}.evil.test` }],
    ["an opaque origin", { origin: "null" }],
    ["an empty origin", { origin: "" }],
    ["no origin, from another site", { origin: undefined, "sec-fetch-site": "cross-site" }],
    ["no origin, from a subdomain", { origin: undefined, "sec-fetch-site": "same-site" }],
    ["no origin, typed into the address bar", { origin: undefined, "sec-fetch-site": "none" }],
    ["neither", { origin: undefined, "sec-fetch-site": undefined }],
    ["an origin that fits with a header that does not", { "postern-dashboard": "0" }],
  ])("session call with %s is rejected and changes nothing", async (_, headers) => {
    const person = await signIn(t, { name: "Victim" });
    const before = await t.audit();
    for (const path of [`/v2/${whoami}`, "/dashboard/auth/sign-out", "/v2/apis.createApi"]) {
      const all = { ...OWN_PAGE, cookie: `__Host-postern=${person.token}`, ...headers };
      const reply = await post(t, path, { name: "forged" }, all);
      expect([reply.status, kindOf(reply)], path).toEqual([403, "cross_origin_request"]);
      expect(reply.headers["access-control-allow-origin"]).toBeUndefined();
    }
    expect(await t.audit()).toEqual(before);
    expect((await person.call(whoami)).status).toBe(200);
    const link = await makeLink(t);
    expect(kindOf(await followLink(t, link, { ...OWN_PAGE, ...headers } as Record<string, string>))).toBe(
      "cross_origin_request",
    );
    expect((await followLink(t, link)).status).toBe(200);
  });

  test("request without Origin is same-origin if Sec-Fetch-Site confirms it", async () => {
    const person = await signIn(t);
    expect((await person.call(whoami, {}, { origin: undefined })).status).toBe(200);
  });

  test("CORS preflight of another origin is denied", async () => {
    const reply = await t.app.inject({
      method: "OPTIONS",
      url: "/v2/apis.createApi",
      headers: {
        origin: "https://evil.test",
        "access-control-request-method": "POST",
        "access-control-request-headers": "postern-dashboard",
      },
    });
    expect(reply.statusCode).toBeGreaterThanOrEqual(400);
    expect(reply.headers["access-control-allow-origin"]).toBeUndefined();
  });

  test("configured public URL is the only accepted origin, whatever the Host header", async () => {
    const behind = await buildTestApp({ signIn: { url: "https://postern.example.com" } });
    const headers = { ...OWN_PAGE, origin: "https://postern.example.com" };
    for (const host of ["postern.example.com", "postern-api-server.postern.svc:8080", "127.0.0.1:8080", "weird host"]) {
      const reply = await followLink(behind, await makeLink(behind), { ...headers, host });
      expect([host, reply.status]).toEqual([host, 200]);
    }
    for (const origin of ["http://postern.example.com", "https://postern.example.com:444", "https://evil.test"]) {
      const reply = await followLink(behind, await makeLink(behind), {
        ...headers,
        host: "postern.example.com",
        origin,
      });
      expect(kindOf(reply)).toBe("cross_origin_request");
    }
    await behind.close();
  });
});

describe("sign-in throttling", () => {
  test("address can make ten failed sign-in attempts per minute, and does not use up the limit of others", async () => {
    let nowMs = 0;
    const bounds = { windowMs: 60_000, address: 60, all: 1_000, failed: 5, nowMs: () => nowMs };
    const bounded = await buildTestApp({ trustedProxies: ["127.0.0.1"], signIn: { bounds } });
    const from = (ip: string) => ({ ...OWN_PAGE, "x-forwarded-for": ip });
    for (let i = 0; i < 10; i++)
      expect((await followLink(bounded, "a".repeat(43), from("192.0.2.1"))).status).toBe(401);
    const good = await makeLink(bounded);
    nowMs = 1_000;
    const limited = await followLink(bounded, good, from("192.0.2.1"));
    expect([limited.status, kindOf(limited), limited.headers["retry-after"]]).toEqual([429, "sign_in_limited", "59"]);
    expect((await followLink(bounded, good, from("192.0.2.2"))).status).toBe(200);
    nowMs = 60_000;
    expect((await followLink(bounded, await makeLink(bounded), from("192.0.2.1"))).status).toBe(200);
    await bounded.close();
  });

  test("failed sign-in attempts are limited across all addresses, and logged once", async () => {
    const bounds = { windowMs: 60_000, address: 60, all: 20, failed: 5, nowMs: () => 0 };
    const bounded = await buildTestApp({ trustedProxies: ["127.0.0.1"], signIn: { bounds } });
    await bounded.deps.db.query("update workspaces set name = 'default' where id = $1", [bounded.workspace.id]);
    const statuses = [];
    for (let i = 0; i < 25; i++) {
      const headers = { ...OWN_PAGE, "x-forwarded-for": `2001:db8:0:${i.toString(16)}::1` };
      statuses.push((await followLink(bounded, "a".repeat(43), headers)).status);
    }
    expect(statuses).toEqual([...Array(20).fill(401), ...Array(5).fill(429)]);
    const rows = await bounded.audit();
    expect(rows.map(({ event, actor }) => [event, actor.name])).toEqual([["session.refuse", "unknown"]]);
    expect(JSON.stringify(rows)).not.toContain("aaa");
    await bounded.close();
  });
});

test("session log contains no secrets", async () => {
  const link = await makeLink(t);
  const reply = await followLink(t, link);
  const token = cookieOf(reply) ?? "";
  await followLink(t, link);
  const person = browserWith(t, token);
  await person.call("apis.getApi", { apiId: "api_missing0" });
  await person.signOut();
  await person.call(whoami);
  const logged = t.logs.join("\n");
  const { rows } = await t.deps.db.query("select to_jsonb(a)::text as row from audit_log a");
  for (const secret of [link, token, hashKey(token)]) {
    expect(logged).not.toContain(secret);
    expect(JSON.stringify(rows)).not.toContain(secret);
  }
});
