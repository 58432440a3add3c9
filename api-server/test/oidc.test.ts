import { createHmac, createSign, generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline, Readable } from "node:stream";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { hashKey } from "../../core/keys/key-string.ts";
import { followRoles } from "../sign-in/roles-file.ts";
import type { SignInSettings } from "../sign-in/settings.ts";
import { buildTestApp, type Reply, type TestApp } from "./app.ts";
import { type IdentityProvider, type IdentityProviderOptions, startIdentityProvider } from "./identity-provider.ts";
import { cookieOf, post } from "./people.ts";

const URL_OF_DASHBOARD = "https://postern.example.com";
const REDIRECT_URI = `${URL_OF_DASHBOARD}/dashboard/auth/callback`;
const NO_BOUNDS = { windowMs: 60_000, address: 1e6, all: 1e6, failed: 0, nowMs: Date.now };

let rolesFile = "groups: {}";
const rolesOfGroups = followRoles(() => rolesFile);

let idp: IdentityProvider;
let t: TestApp;
beforeAll(async () => {
  idp = await startIdentityProvider({ redirectUri: REDIRECT_URI });
  t = await buildWith(idp);
});
afterAll(async () => {
  await t.close();
  await idp.close();
});
beforeEach(() => {
  idp.person = { sub: "ada", claims: { name: "Ada Lovelace", email: "ada@example.com", groups: ["platform"] } };
  rolesFile = `groups: {platform: {"*": admin}}`;
});

const buildWith = (
  of: Pick<IdentityProvider, "issuer" | "clientId" | "clientSecret">,
  more: Partial<SignInSettings["provider"]> = {},
) =>
  buildTestApp({
    signIn: {
      url: URL_OF_DASHBOARD,
      bounds: NO_BOUNDS,
      rolesOfGroups,
      provider: {
        issuer: of.issuer,
        clientId: of.clientId,
        clientSecret: () => of.clientSecret,
        scopes: "openid profile email",
        groupsClaim: "groups",
        ...more,
      },
    },
  });

interface Answered extends Omit<Reply, "body"> {
  readonly location: string;
}

async function get(url: string, headers: Readonly<Record<string, string>> = {}, of = t): Promise<Answered> {
  const response = await of.app.inject({ url, headers: { host: "postern.example.com", ...headers } });
  expect(response.headers["cache-control"]).toBe("no-store");
  return { status: response.statusCode, headers: response.headers, location: String(response.headers.location) };
}

/** Starts a sign-in in a browser and returns its cookie. */
async function begin(to?: string, of = t): Promise<{ url: string; cookie: string }> {
  const query = to === undefined ? "" : `?${new URLSearchParams({ to })}`;
  const reply = await get(`/dashboard/auth/start${query}`, { "sec-fetch-site": "same-origin" }, of);
  expect(reply.status).toBe(303);
  return { url: reply.location, cookie: `__Host-postern-sign-in=${cookieOf(reply, "__Host-postern-sign-in")}` };
}

const comeBack = (url: URL, cookie: string, of = t): Promise<Answered> =>
  get(`${url.pathname}${url.search}`, { cookie, "sec-fetch-site": "cross-site" }, of);

/** Performs a complete sign-in. */
async function signIn(to?: string, of = t, provider = idp): Promise<Answered> {
  const { url, cookie } = await begin(to, of);
  return comeBack(await provider.follow(url), cookie, of);
}

const OWN = { host: "postern.example.com", origin: URL_OF_DASHBOARD, "postern-dashboard": "1" };
const call = (reply: Answered, path: string, headers: Readonly<Record<string, string>> = {}, of = t) =>
  post(of, `/v2/${path}`, {}, { ...OWN, cookie: `__Host-postern=${cookieOf(reply)}`, ...headers });
const kindOf = ({ body }: Reply): string | undefined => body.error?.type.split("/").at(-1);

/** A token from a provider with malformed responses. */
const UNQUOTED = "zQ7xK9vW2pL4mN8bR6tY";

/** Asserts that no session was opened and which error code the page gets. */
function refusedWith(reply: Answered, word: string): void {
  expect([reply.status, reply.location]).toEqual([303, `/dashboard/sign-in?error=${word}`]);
  expect(cookieOf(reply)).toBeUndefined();
}

test("OIDC sign-in creates a session for the provider's user", async () => {
  const reply = await signIn("/dashboard/keys?search=a");
  expect([reply.status, reply.location]).toEqual([303, "/dashboard/keys?search=a"]);
  const lines = reply.headers["set-cookie"] as unknown as string[];
  expect(lines[0]).toMatch(/^__Host-postern=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict$/);
  expect(lines[1]).toMatch(/^__Host-postern-sign-in=; Path=\/; Max-Age=0;/);
  expect((await call(reply, "workspaces.getWorkspace")).status).toBe(200);
  const { rows } = await t.deps.db.query("select * from sessions where token_hash = $1", [
    hashKey(cookieOf(reply) ?? ""),
  ]);
  expect(rows).toMatchObject([
    {
      issuer: idp.issuer,
      subject: "ada",
      name: "Ada Lovelace",
      email: "ada@example.com",
      signed_in_by: "oidc",
      groups: ["platform"],
      roles: [],
    },
  ]);
});

test("OIDC sign-in uses unique PKCE, state and nonce values and its own cookie", async () => {
  const reply = await get("/dashboard/auth/start", { "sec-fetch-site": "same-origin" });
  expect(reply.headers["set-cookie"]).toMatch(
    /^__Host-postern-sign-in=[\w-]{43}; Path=\/; Max-Age=600; Secure; HttpOnly; SameSite=Lax$/,
  );
  expect(reply.headers["referrer-policy"]).toBe("no-referrer");
  const [one, other] = [new URL(reply.location).searchParams, new URL((await begin()).url).searchParams];
  expect(Object.fromEntries(one)).toMatchObject({
    client_id: "postern",
    response_type: "code",
    redirect_uri: REDIRECT_URI,
    code_challenge_method: "S256",
  });
  for (const name of ["state", "nonce", "code_challenge"]) {
    expect(one.get(name)?.length).toBeGreaterThan(30);
    expect(one.get(name)).not.toBe(other.get(name));
  }
});

test.each(["https://evil.test/", "//evil.test", "/dashboard/../v2", "/dashboard/\\evil.test", "javascript:alert(1)"])(
  "OIDC sign-in redirects to the start page instead of %s",
  async (to) => expect((await signIn(to)).location).toBe("/dashboard/"),
);

describe("rejected callbacks", () => {
  test("OIDC callback with an unknown state is rejected, and the original sign-in continues", async () => {
    const { url, cookie } = await begin();
    const back = await idp.follow(url);
    const forged = new URL(back);
    forged.searchParams.set("state", "x".repeat(43));
    refusedWith(await comeBack(forged, cookie), "state");
    expect(cookieOf(await comeBack(back, cookie))).toBeDefined();
  });

  test.each([
    ["without a state", (url: URL) => url.searchParams.delete("state")],
    ["with two states", (url: URL) => url.searchParams.append("state", "other")],
    ["with nothing", (url: URL) => [...url.searchParams.keys()].forEach((name) => void url.searchParams.delete(name))],
    ["with a null in it", (url: URL) => url.searchParams.set("state", "a\0b")],
  ])("OIDC callback is rejected: %s", async (_, forge) => {
    const { url, cookie } = await begin();
    const back = await idp.follow(url);
    forge(back);
    refusedWith(await comeBack(back, cookie), "state");
  });

  test("OIDC callback in another browser is rejected", async () => {
    const [mine, other] = [await begin(), await begin()];
    const back = await idp.follow(mine.url);
    refusedWith(await comeBack(back, ""), "state");
    refusedWith(await comeBack(back, other.cookie), "state");
    expect(cookieOf(await comeBack(back, mine.cookie))).toBeDefined();
  });

  test("OIDC callback works only once, even with 20 concurrent calls", async () => {
    const { url, cookie } = await begin();
    const back = await idp.follow(url);
    const replies = await Promise.all(Array.from({ length: 20 }, () => comeBack(back, cookie)));
    expect(replies.filter((reply) => cookieOf(reply) !== undefined)).toHaveLength(1);
    refusedWith(await comeBack(back, cookie), "state");
  });

  test("OIDC callback after ten minutes is rejected", async () => {
    const { url, cookie } = await begin();
    const back = await idp.follow(url);
    await t.deps.db.query("update sign_in_flows set expires_at = $1", [Date.now() - 1]);
    refusedWith(await comeBack(back, cookie), "state");
  });

  test("OIDC callback with the nonce of another sign-in is rejected", async () => {
    const { url, cookie } = await begin();
    const back = await idp.follow(url);
    await t.deps.db.query("update sign_in_flows set nonce = 'other'");
    refusedWith(await comeBack(back, cookie), "token");
  });

  test("OIDC callback with another code verifier is rejected", async () => {
    const { url, cookie } = await begin();
    const back = await idp.follow(url);
    await t.deps.db.query("update sign_in_flows set code_verifier = $1", ["v".repeat(43)]);
    refusedWith(await comeBack(back, cookie), "token");
  });

  test("OIDC callback with a used code is rejected", async () => {
    const first = await begin();
    const used = await idp.follow(first.url);
    await comeBack(used, first.cookie);
    const second = await begin();
    const back = await idp.follow(second.url);
    back.searchParams.set("code", used.searchParams.get("code") ?? "");
    refusedWith(await comeBack(back, second.cookie), "token");
  });

  test("OIDC callback with an expired code is rejected", async () => {
    idp.codeLivesS = 1;
    onTestFinished(() => {
      idp.codeLivesS = 60;
    });
    const { url, cookie } = await begin();
    const back = await idp.follow(url);
    // The provider measures time in whole seconds of the system clock.
    await new Promise((done) => setTimeout(done, 2_100));
    refusedWith(await comeBack(back, cookie), "token");
  });

  test.each(["https://evil.test", "", "http://127.0.0.1:1"])(
    "OIDC callback with issuer %j or without one is rejected",
    async (issuer) => {
      const { url, cookie } = await begin();
      const back = await idp.follow(url);
      expect(back.searchParams.get("iss")).toBe(idp.issuer);
      if (issuer === "") back.searchParams.delete("iss");
      else back.searchParams.set("iss", issuer);
      refusedWith(await comeBack(back, cookie), "token");
    },
  );

  test("OIDC callback after the user declined is rejected with an error that omits the provider's text", async () => {
    idp.person = "refuses";
    refusedWith(await signIn(), "denied");
    expect(t.logs.join("\n")).not.toContain("<script>");
  });

  test("OIDC callback without a started sign-in is rejected", async () => {
    for (const query of [
      "error=access_denied",
      "code=x&state=y&iss=z",
      `code=${"c".repeat(9000)}`,
      "state[]=a",
      "%",
      "a=%zz",
    ]) {
      const { cookie } = await begin();
      refusedWith(await get(`/dashboard/auth/callback?${query}`, { cookie }), "state");
    }
  });
});

describe("an ID token", () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const now = () => Math.floor(Date.now() / 1000);

  /** Starts a provider that returns any ID token, which a real one never does. */
  async function lying(claims: (issuer: string, nonce: string) => object, kid: string): Promise<IdentityProvider> {
    let nonce = "";
    const keys = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const server = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? "", issuer);
      response.setHeader("content-type", "application/json");
      if (pathname === "/authorize") nonce = searchParams.get("nonce") ?? "";
      if (pathname === "/.well-known/openid-configuration") {
        response.end(
          JSON.stringify({
            issuer,
            authorization_endpoint: `${issuer}/authorize`,
            token_endpoint: `${issuer}/token`,
            jwks_uri: `${issuer}/jwks`,
            response_types_supported: ["code"],
            subject_types_supported: ["public"],
            id_token_signing_alg_values_supported: ["RS256", "HS256", "none"],
          }),
        );
      } else if (pathname === "/jwks") {
        response.end(
          JSON.stringify({
            keys: [{ ...keys.publicKey.export({ format: "jwk" }), kid: "known", use: "sig", alg: "RS256" }],
          }),
        );
      } else if (pathname === "/token" && kid === "unquoted") {
        response.end(`{"access_token": ${UNQUOTED}, "token_type": "bearer"}`);
      } else if (pathname === "/token") {
        const alg = { none: "none", secret: "HS256" }[kid] ?? "RS256";
        const text = `${base64({ alg, kid: "known" })}.${base64(claims(issuer, nonce))}`;
        const bySecret = createHmac("sha256", idp.clientSecret).update(text).digest("base64url");
        const byKey = createSign("RSA-SHA256")
          .update(text)
          .sign(kid === "known" ? keys.privateKey : privateKey, "base64url");
        const signature = { none: "", secret: bySecret }[kid] ?? byKey;
        response.end(JSON.stringify({ access_token: "a", token_type: "bearer", id_token: `${text}.${signature}` }));
      } else {
        const back = `${REDIRECT_URI}?${new URLSearchParams({ code: "c", state: searchParams.get("state") ?? "" })}`;
        response.writeHead(303, { location: back }).end();
      }
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    onTestFinished(() => void server.close());
    return {
      ...idp,
      issuer,
      follow: async (url) => new URL((await fetch(url, { redirect: "manual" })).headers.get("location") ?? ""),
    };
  }

  test("invalid OIDC ID token is rejected, and the log contains no part of it", async () => {
    const liar = await lying(() => ({}), "unquoted");
    const of = await buildWith(liar);
    onTestFinished(() => of.close());
    refusedWith(await signIn(undefined, of, liar), "token");
    const logged = of.logs.join("\n");
    expect(logged).toContain("a sign-in with the provider failed");
    for (let at = 0; at + 4 <= UNQUOTED.length; at++) expect(logged).not.toContain(UNQUOTED.slice(at, at + 4));
  });

  const honest = (issuer: string, nonce: string) => ({
    iss: issuer,
    aud: "postern",
    sub: "eve",
    nonce,
    iat: now(),
    exp: now() + 60,
    groups: ["platform"],
  });

  test.each([
    ["that is right is taken", honest, "known", undefined],
    [
      "of another issuer",
      (iss: string, nonce: string) => ({ ...honest(iss, nonce), iss: "https://evil.test" }),
      "known",
      "token",
    ],
    ["for another client", (iss: string, nonce: string) => ({ ...honest(iss, nonce), aud: "other" }), "known", "token"],
    ["without a nonce", (iss: string) => ({ ...honest(iss, ""), nonce: undefined }), "known", "token"],
    [
      "whose subject no database can store",
      (iss: string, nonce: string) => ({ ...honest(iss, nonce), sub: "eve\0" }),
      "known",
      "token",
    ],
    [
      "whose subject is longer than subjects are",
      (iss: string, nonce: string) => ({ ...honest(iss, nonce), sub: randomBytes(10_000).toString("hex") }),
      "known",
      "token",
    ],
    [
      "that has expired",
      (iss: string, nonce: string) => ({ ...honest(iss, nonce), exp: now() - 120 }),
      "known",
      "token",
    ],
    [
      "without a subject",
      (iss: string, nonce: string) => ({ ...honest(iss, nonce), sub: undefined }),
      "known",
      "token",
    ],
    ["that another key has signed", honest, "unknown", "token"],
    ["that no key has signed", honest, "none", "token"],
    ["that the client's own secret has signed", honest, "secret", "token"],
    [
      "for several clients, without saying for which of them",
      (iss: string, nonce: string) => ({ ...honest(iss, nonce), aud: ["postern", "other"] }),
      "known",
      "token",
    ],
    [
      "for several clients, and made for another",
      (iss: string, nonce: string) => ({ ...honest(iss, nonce), aud: ["postern", "other"], azp: "other" }),
      "known",
      "token",
    ],
    [
      "that is not valid yet",
      (iss: string, nonce: string) => ({ ...honest(iss, nonce), nbf: now() + 300 }),
      "known",
      "token",
    ],
  ])("OIDC sign-in validates the ID token: %s", async (_, claims, kid, word) => {
    const liar = await lying(claims, kid);
    const of = await buildWith(liar);
    onTestFinished(() => of.close());
    const reply = await signIn(undefined, of, liar);
    if (word === undefined) expect(cookieOf(reply)).toBeDefined();
    else refusedWith(reply, word);
  });
});

describe("the provider", () => {
  test("unavailable OIDC provider shows an error page and is retried later", async () => {
    const own = await startIdentityProvider({ redirectUri: REDIRECT_URI });
    const of = await buildWith(own);
    onTestFinished(() => of.close());
    const { url, cookie } = await begin(undefined, of);
    const back = await own.follow(url);
    await own.close();
    refusedWith(await comeBack(back, cookie, of), "provider");
    const fresh = await buildWith(own);
    onTestFinished(() => fresh.close());
    refusedWith(await get("/dashboard/auth/start", {}, fresh), "provider");
    expect(of.logs.join("\n")).toContain("the provider does not answer");
    expect(fresh.logs.join("\n")).toContain("the provider's metadata cannot be read");
  });

  test.each([
    ["/token", "says 503", "provider"],
    ["/jwks", "says 503", "provider"],
    ["/jwks", "sends no end", "token"],
    ["/token", "sends no end", "token"],
    ["/.well-known/openid-configuration", "sends no end", "provider"],
    ["/token", "leads elsewhere", "token"],
    ["/jwks", "leads elsewhere", "token"],
    ["/.well-known/openid-configuration", "leads elsewhere", "provider"],
  ] as const)(
    "OIDC sign-in is rejected quickly without buffering if the provider's %s %s",
    async (path, fault, word) => {
      let sent = 0;
      let led = 0;
      function* endless(): Generator<string> {
        yield '{"a":"';
        for (; sent < 200e6; sent += 65_536) yield "x".repeat(65_536);
      }
      const server = createServer(async (request, response) => {
        const issuer = `http://${request.headers.host}`;
        if (request.url === "/elsewhere") led += 1;
        if (request.url === path && fault === "says 503") response.writeHead(503).end("the proxy has no provider");
        else if (request.url === path && fault === "leads elsewhere") {
          response.writeHead(307, { location: "/elsewhere" }).end();
        } else if (request.url === path) {
          response.writeHead(200, { "content-type": "application/json" });
          pipeline(Readable.from(endless()), response, () => undefined);
        } else if (request.url?.startsWith("/.well-known/")) {
          response.writeHead(200, { "content-type": "application/json" });
          const more = { response_types_supported: ["code"], subject_types_supported: ["public"] };
          const addresses = { authorization_endpoint: `${issuer}/a`, token_endpoint: `${issuer}/token` };
          response.end(JSON.stringify({ issuer, ...addresses, jwks_uri: `${issuer}/jwks`, ...more }));
        } else {
          const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
          const nowS = Math.floor(Date.now() / 1000);
          const { rows } = await of.deps.db.query("select nonce from sign_in_flows_taken");
          const claims = { iss: issuer, aud: "postern", sub: "eve", nonce: rows[0].nonce, iat: nowS, exp: nowS + 60 };
          const id_token = `${part({ alg: "RS256" })}.${part(claims)}.${"A".repeat(342)}`;
          response.writeHead(200, { "content-type": "application/json" });
          response.end(JSON.stringify({ access_token: "a", token_type: "bearer", id_token }));
        }
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      onTestFinished(() => void server.close());
      const { port } = server.address() as AddressInfo;
      const of = await buildWith({ ...idp, issuer: `http://127.0.0.1:${port}` });
      onTestFinished(() => of.close());
      const start = await get("/dashboard/auth/start", { "sec-fetch-site": "same-origin" }, of);
      let last = start;
      if (!path.startsWith("/.well-known/")) {
        await of.deps.db.query("create table sign_in_flows_taken as select * from sign_in_flows");
        const state = new URL(start.location).searchParams.get("state") ?? "";
        const cookie = `__Host-postern-sign-in=${cookieOf(start, "__Host-postern-sign-in")}`;
        last = await get(`/dashboard/auth/callback?${new URLSearchParams({ code: "c", state })}`, { cookie }, of);
      }
      refusedWith(last, word);
      expect(sent).toBeLessThan(20e6);
      expect(led).toBe(0);
    },
  );

  test("OIDC provider with another issuer name is rejected", async () => {
    const of = await buildWith({ ...idp, issuer: idp.issuer.replace("127.0.0.1", "localhost") });
    onTestFinished(() => of.close());
    refusedWith(await get("/dashboard/auth/start", {}, of), "provider");
  });

  test.each<Omit<IdentityProviderOptions, "redirectUri">>([
    { groupsIn: "userinfo" },
    { method: "client_secret_post" },
    { method: "none" },
  ])("OIDC provider variant is supported: %j", async (options) => {
    const own = await startIdentityProvider({ redirectUri: REDIRECT_URI, ...options });
    own.person = { sub: "grace", claims: { preferred_username: "grace", groups: ["platform"] } };
    const of = await buildWith(own, options.method === "none" ? { clientSecret: undefined } : {});
    onTestFinished(() => of.close());
    onTestFinished(() => own.close());
    const reply = await signIn(undefined, of, own);
    expect((await call(reply, "workspaces.getWorkspace", {}, of)).status).toBe(200);
  });

  test("wrong client secret is rejected by the OIDC provider and not logged", async () => {
    const of = await buildWith({ ...idp, clientSecret: "wrong-secret-of-the-client" });
    onTestFinished(() => of.close());
    refusedWith(await signIn(undefined, of), "token");
    expect(of.logs.join("\n")).not.toContain("wrong-secret");
  });

  test("cross-site page cannot start an OIDC sign-in", async () => {
    for (const site of ["cross-site", "same-site"]) {
      const reply = await get("/dashboard/auth/start", { "sec-fetch-site": site });
      expect([reply.location, reply.headers["set-cookie"]]).toEqual(["/dashboard/sign-in", undefined]);
    }
  });
});

test("address with invalid OIDC callbacks is throttled while others sign in", async () => {
  const of = await buildTestApp({
    trustedProxies: ["127.0.0.1"],
    signIn: {
      url: URL_OF_DASHBOARD,
      bounds: { windowMs: 60_000, address: 60, all: 1_000, failed: 5, nowMs: () => 0 },
      rolesOfGroups,
      provider: { ...idp, clientSecret: () => idp.clientSecret, scopes: "openid profile email", groupsClaim: "groups" },
    },
  });
  onTestFinished(() => of.close());
  const nonsense = () => get("/dashboard/auth/callback?code=x&state=y", { "x-forwarded-for": "192.0.2.1" }, of);
  for (let i = 0; i < 10; i++) refusedWith(await nonsense(), "state");
  expect((await nonsense()).status).toBe(429);
  expect((await get("/dashboard/auth/start", { "x-forwarded-for": "192.0.2.1" }, of)).status).toBe(429);
  expect(cookieOf(await signIn(undefined, of))).toBeDefined();
  const { rowCount } = await of.deps.db.query("select from audit_log where event = 'session.refuse'");
  expect(rowCount).toBeLessThanOrEqual(1);
});

test("unfinished OIDC sign-ins are removed by later ones", async () => {
  await t.deps.db.query(
    "insert into sign_in_flows select 'hash' || i, 's', 'n', 'v', '/dashboard/', $1 from generate_series(1, 100) i",
    [Date.now() - 1],
  );
  for (let i = 0; i < 20; i++) await begin();
  const { rows } = await t.deps.db.query("select count(*)::int from sign_in_flows where browser_hash like 'hash%'");
  expect(rows).toEqual([{ count: 0 }]);
});

describe("a page of another site", () => {
  const STRANGE = { host: "postern.example.com", origin: "https://evil.test", "sec-fetch-site": "cross-site" };
  const from = (address: string) => ({ "x-forwarded-for": address });

  test("cross-site requests do not consume the sign-in limit of an address", async () => {
    const of = await buildTestApp({
      trustedProxies: ["127.0.0.1"],
      signIn: {
        url: URL_OF_DASHBOARD,
        bounds: { windowMs: 60_000, address: 60, all: 100, failed: 5, nowMs: () => 0 },
        rolesOfGroups,
        provider: { ...idp, clientSecret: () => idp.clientSecret, scopes: "openid profile", groupsClaim: "groups" },
      },
    });
    onTestFinished(() => of.close());
    const office = from("192.0.2.1");
    for (let i = 0; i < 120; i++) {
      const start = await get("/dashboard/auth/start", { ...STRANGE, "sec-fetch-dest": "image", ...office }, of);
      expect([start.status, start.location]).toEqual([303, "/dashboard/sign-in"]);
      for (const dest of ["image", "iframe", "empty"]) {
        const url = "/dashboard/auth/callback?code=x&state=y";
        const back = await get(url, { ...STRANGE, "sec-fetch-dest": dest, ...office }, of);
        expect([back.status, back.location]).toEqual([303, "/dashboard/sign-in"]);
      }
      const link = await post(of, "/dashboard/auth/link", { token: "a".repeat(43) }, { ...STRANGE, ...office });
      expect(link.status).toBe(403);
    }
    const begun = await get("/dashboard/auth/start", { "sec-fetch-site": "same-origin", ...office }, of);
    const cookie = `__Host-postern-sign-in=${cookieOf(begun, "__Host-postern-sign-in")}`;
    const { pathname, search } = await idp.follow(begun.location);
    const arrival = { cookie, "sec-fetch-site": "cross-site", "sec-fetch-dest": "document", ...office };
    expect(cookieOf(await get(pathname + search, arrival, of))).toBeDefined();
  });
});

describe("the groups of a user", () => {
  test("roles file changes apply to signed-in users immediately", async () => {
    const { id } = await t.makeWorkspace();
    const reply = await signIn();
    const asked = async () => {
      const { status } = await call(reply, "apis.createApi", { "postern-workspace": id });
      return status;
    };
    expect(await asked()).toBe(400);
    rolesFile = `groups: {platform: {${id}: viewer}}`;
    expect(await asked()).toBe(400);
    const refused = await post(
      t,
      "/v2/apis.createApi",
      { name: "shop" },
      { ...OWN, cookie: `__Host-postern=${cookieOf(reply)}` },
    );
    expect([refused.status, refused.body.error.detail]).toEqual([
      403,
      "The role viewer lacks the permission api.*.create_api.",
    ]);
    rolesFile = "groups: {}";
    const gone = await call(reply, "workspaces.getWorkspace");
    expect([kindOf(gone), gone.body.error.detail]).toEqual([
      "no_role",
      "Ada Lovelace has no role in any workspace. Groups seen: platform.",
    ]);
  });

  test("OIDC groups grant roles only in the workspaces that the roles file names", async () => {
    const [shop, bank, other] = [await t.makeWorkspace(), await t.makeWorkspace(), await t.makeWorkspace()];
    await t.deps.db.query("update workspaces set name = 'bank' where id = $1", [bank.id]);
    rolesFile = `groups: {a: {${shop.id}: viewer, bank: viewer}, b: {bank: admin}}`;
    idp.person = { sub: "two", claims: { name: "Two", groups: ["a", "b", "unknown"] } };
    const reply = await signIn();
    const make = async (workspace: string) =>
      (
        await post(
          t,
          "/v2/apis.createApi",
          { name: "api" },
          { ...OWN, cookie: `__Host-postern=${cookieOf(reply)}`, "postern-workspace": workspace },
        )
      ).status;
    expect([await make(shop.id), await make(bank.id), await make("bank"), await make(other.id)]).toEqual([
      403, 200, 200, 403,
    ]);
    const events = async (id: string) => (await t.audit(id)).map(({ event, actor }) => `${event} ${actor.name}`);
    expect(await events(shop.id)).toEqual(["session.create Two"]);
    expect(await events(bank.id)).toContain("session.create Two");
    expect(await events(other.id)).toEqual([]);
  });

  test("changed OIDC groups of a user apply from the next sign-in", async () => {
    rolesFile = `groups: {platform: {"*": admin}, none: {}}`;
    const before = await signIn();
    idp.person = { sub: "ada", claims: { name: "Ada Lovelace", groups: ["none"] } };
    const after = await signIn();
    expect((await call(before, "workspaces.getWorkspace")).status).toBe(200);
    expect(kindOf(await call(after, "workspaces.getWorkspace"))).toBe("no_role");
  });

  test.each([
    ["none", undefined, []],
    ["one as a text", "platform", ["platform"]],
    ["what is no text", [1, null, { a: 1 }, ["nested"], "platform", ""], ["platform"]],
    ["control characters and halves of characters", ["a\0b", "\ud800", "c\nd", "platform"], ["platform"]],
    ["one that is too long", ["g".repeat(256), "platform"], ["platform"]],
    ["unicode", ["Équipe 🔑", "__proto__", "constructor"], ["Équipe 🔑", "__proto__", "constructor"]],
    [
      "thousands",
      Array.from({ length: 3000 }, (_, i) => `group-${i}`),
      Array.from({ length: 1000 }, (_, i) => `group-${i}`),
    ],
  ])("OIDC groups claim can be %s", async (_, groups, seen) => {
    idp.person = { sub: "groups", claims: { name: "Groups", groups } };
    const reply = await signIn();
    const { rows } = await t.deps.db.query("select groups from sessions where token_hash = $1", [
      hashKey(cookieOf(reply) ?? ""),
    ]);
    expect(rows[0].groups).toEqual(seen);
  });
});

test("OIDC user without a name is shown by the best available identifier", async () => {
  for (const [claims, name] of [
    [{ preferred_username: "ada", email: "a@b" }, "ada"],
    [{ name: " ", email: "a@b" }, "a@b"],
    [{ name: "n".repeat(300) }, "nameless"],
    [{ name: "a\nb" }, "nameless"],
  ] as const) {
    idp.person = { sub: "nameless", claims };
    const reply = await signIn();
    const { rows } = await t.deps.db.query("select name from sessions where token_hash = $1", [
      hashKey(cookieOf(reply) ?? ""),
    ]);
    expect(rows).toEqual([{ name }]);
  }
});

test("OIDC sign-in ends the previous session of the browser", async () => {
  const before = await signIn();
  const cookie = `__Host-postern=${cookieOf(before)}`;
  await get("/dashboard/auth/start", { cookie, "sec-fetch-site": "same-origin" });
  expect(kindOf(await call(before, "workspaces.getWorkspace"))).toBe("session_ended");
});

test("signing out everywhere ends a user's OIDC sessions but no sessions opened by links", async () => {
  idp.person = { sub: "same", claims: { name: "same", groups: ["platform"] } };
  const [one, other] = [await signIn(), await signIn()];
  const { browserWith, followLink, makeLink } = await import("./people.ts");
  const byLink = await followLink(t, await makeLink(t, { name: "same" }));
  await post(
    t,
    "/dashboard/auth/sign-out",
    { everywhere: true },
    { ...OWN, cookie: `__Host-postern=${cookieOf(one)}` },
  );
  expect(kindOf(await call(other, "workspaces.getWorkspace"))).toBe("session_ended");
  expect((await browserWith(t, cookieOf(byLink) ?? "").call("workspaces.getWorkspace")).status).toBe(200);
});

test("OIDC secrets never appear in logs, audit log or page URLs", async () => {
  const { url, cookie } = await begin();
  const back = await idp.follow(url);
  const reply = await comeBack(back, cookie);
  await comeBack(back, cookie);
  const code = back.searchParams.get("code") ?? "none";
  const secrets = [code, cookieOf(reply) ?? "none", cookie.split("=")[1] ?? "none", idp.clientSecret];
  const { rows } = await t.deps.db.query("select to_jsonb(a)::text as row from audit_log a");
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThan(20);
    for (const place of [t.logs.join("\n"), JSON.stringify(rows), reply.location]) expect(place).not.toContain(secret);
  }
});
