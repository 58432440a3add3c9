import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, type RawResponse, sendRaw } from "../harness/gate.ts";
import { waitFor } from "../harness/wait.ts";
import type { World } from "./world.ts";

/* Requirements for every gateway with an ext-auth endpoint of the gate, tested with the real programs. */

export interface Gateway {
  readonly port: number;
  /** Returns the log output, for a failing test. */
  log(): string;
  close(): Promise<void>;
}

export interface Expected {
  /** Whether the app does not receive a key sent in the query. */
  readonly stripsQueryKey: boolean;
  /** Accepted statuses for a request that cannot be decided. */
  readonly undecided: readonly number[];
  /** Whether the client receives the `RateLimit-*` headers of an admitted request. */
  readonly showsLimits: boolean;
}

/** Identity headers in spellings that some servers normalize to a Postern header. */
const FORGED = {
  "X-Postern-Key-Id": "forged",
  "x-postern-permissions": "admin",
  "X-Postern-Roles": "forged",
  "X-Postern-External-Id": "forged",
  "X-Postern-Identity-Id": "forged",
  "X-Postern-Omitted": "forged",
  "X-Postern-Target": "/forged",
  X_Postern_Key_Id: "forged",
  "X-Postern_Key-Id": "forged",
  "X.Postern.Key.Id": "forged",
};

/** Spellings of `/admin`, and paths into it, that servers between client and app may read differently. */
const WAYS_INTO_ADMIN = [
  "/admin",
  "/admin/",
  "/%61dmin",
  "/%61%64%6d%69%6e",
  "//admin",
  "/./admin",
  "/public/../admin",
  "/public/%2e%2e/admin",
  "/public/.%2E/admin",
  "/public/..%2fadmin",
  "/public%2f..%2fadmin",
  "/public/..\\admin",
  "/public/..%5cadmin",
  "/public/..;/admin",
  "/public/..%3b/admin",
  "/admin;x=y",
  "/admin%3bx",
  "/admin%00",
  "/admin%2f",
  "/admin%2Fx",
  "/%2561dmin",
  "/public?/../admin",
  "/public#/../admin",
  "/admin?x=/public",
  "http://public/admin",
  "http://x/public/../admin",
];

export function testGateway(
  name: string,
  open: { world(): Promise<World>; gateway(world: World): Promise<Gateway>; expected: Expected },
) {
  describe(name, () => {
    let world: World;
    let gateway: Gateway;
    const { expected } = open;
    beforeAll(async () => {
      world = await open.world();
      gateway = await open.gateway(world);
    }, 900_000);
    afterAll(async () => {
      await gateway?.close();
      await world?.close();
    });

    const ask = (path: string, headers: Record<string, string> = {}, more: { method?: string; body?: string } = {}) => {
      world.app.seen.length = 0;
      return call(gateway.port, { path, headers, ...more });
    };
    const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });

    test("gateway forwards a valid key's identity headers without the key", async () => {
      await world.records.putIdentity({ id: "id_1", externalId: "cust omer", ratelimits: [] });
      const key = await world.records.putKey({ keyId: "key_1", identityId: "id_1", permissions: ["orders.read"] });
      const response = await ask("/orders/1?a=b&c=%20d", bearer(key));
      expect(response.status, gateway.log()).toBe(200);
      const [seen] = world.app.seen;
      expect(seen).toMatchObject({
        method: "GET",
        url: "/orders/1?a=b&c=%20d",
        headers: {
          "x-postern-key-id": "key_1",
          "x-postern-identity-id": "id_1",
          "x-postern-external-id": "cust%20omer",
          "x-postern-permissions": "orders.read",
          "x-postern-request-id": expect.stringMatching(/^req_[A-Za-z0-9]{16}$/),
        },
      });
      expect(JSON.stringify(seen)).not.toContain(key);
    });

    test("gateway passes host, headers and client address on for the rules that use them", async () => {
      const status = async (path: string, headers: Record<string, string>): Promise<number> =>
        (await ask(path, headers)).status;
      expect(await status("/public", { Host: "other.test" }), gateway.log()).toBe(200);
      expect(world.app.seen).toHaveLength(1);
      expect(await status("/public", { Host: "Denied.test:8080" })).toBe(403);
      expect(await status("/public", { Host: "denied.test", "X-Forwarded-Host": "other.test" })).toBe(403);
      expect(await status("/public", { "X-Denied": "1" })).toBe(403);
      const guests: number[] = [];
      for (const address of ["192.0.2.1", "192.0.2.2", "192.0.2.3"]) {
        guests.push(await status("/guests", { "X-Forwarded-For": address, "X-Real-IP": address }));
      }
      expect(guests).toEqual([200, 200, 429]);
    });

    test("gateway forwards the client's method and body", async () => {
      const key = await world.records.putKey({ keyId: "key_2" });
      const body = "x".repeat(100_000);
      expect((await ask("/orders", bearer(key), { method: "POST", body })).status, gateway.log()).toBe(200);
      expect(world.app.seen[0]).toMatchObject({ method: "POST", body });
      expect((await ask("/orders", bearer(key), { method: "HEAD" })).status).toBe(200);
      expect(world.app.seen[0]).toMatchObject({ method: "HEAD" });
      // A policy rule requires a permission for this method.
      expect((await ask("/orders", bearer(key), { method: "DELETE" })).status).toBe(403);
      expect(world.app.seen).toEqual([]);
    });

    test("gateway responds 401 with a challenge to a request without a key", async () => {
      const response = await ask("/orders");
      expect(response.status, gateway.log()).toBe(401);
      expect(response.headers["www-authenticate"]).toBe('Bearer realm="postern"');
      expect(world.app.seen).toEqual([]);
    });

    test("gateway responds 401 to unknown and disabled keys, and 403 to a key without permission", async () => {
      expect((await ask("/orders", bearer("nobody-knows-it"))).status).toBe(401);
      const disabled = await world.records.putKey({ keyId: "key_3", enabled: false });
      expect((await ask("/orders", { "X-API-Key": disabled })).status).toBe(401);
      const poor = await world.records.putKey({ keyId: "key_4" });
      expect((await ask("/admin", bearer(poor))).status).toBe(403);
      expect(world.app.seen).toEqual([]);
      const rich = await world.records.putKey({ keyId: "key_5", permissions: ["admin"] });
      expect((await ask("/admin", bearer(rich))).status).toBe(200);
    });

    test("gateway responds 429 with Retry-After and the limit when the limit is exceeded", async () => {
      const key = await world.records.putKey({ keyId: "key_6" });
      const first = await ask("/limited", bearer(key));
      expect(first.status).toBe(200);
      const policy = { "ratelimit-policy": '"limited";q=2;w=3600' };
      if (expected.showsLimits) expect(first.headers).toMatchObject({ "ratelimit-remaining": "1", ...policy });
      expect((await ask("/limited", bearer(key))).status).toBe(200);
      const response = await ask("/limited", bearer(key));
      expect(response.status, gateway.log()).toBe(429);
      expect(Number(response.headers["retry-after"])).toBeGreaterThan(0);
      expect(response.headers).toMatchObject({ "ratelimit-limit": "2", "ratelimit-remaining": "0", ...policy });
      expect(world.app.seen).toEqual([]);
    });

    test("gateway accepts a key in the query even with an escaped name", async () => {
      const key = await world.records.putKey({ keyId: "key_7" });
      for (const query of [`api_key=${key}&a=b`, `a=b&api%5Fkey=${key}`]) {
        expect((await ask(`/orders?${query}`)).status, gateway.log()).toBe(200);
        expect(world.app.seen[0]?.headers["x-postern-key-id"]).toBe("key_7");
        if (expected.stripsQueryKey) expect(world.app.seen[0]?.url).toBe("/orders?a=b");
      }
    });

    test("gateway removes identity headers sent by a client", async () => {
      const key = await world.records.putKey({ keyId: "key_8" });
      for (const [path, headers] of [
        ["/public", FORGED],
        ["/orders", { ...FORGED, ...bearer(key) }],
      ] as const) {
        const { status } = await ask(path, headers);
        // A gateway may also reject such names.
        if (status === 400) continue;
        expect(status, gateway.log()).toBe(200);
        const text = JSON.stringify(world.app.seen[0]?.rawHeaders);
        expect(text).not.toContain("forged");
        expect(world.app.seen[0]?.headers["x-postern-permissions"]).toBeUndefined();
      }
    });

    test("Connection header of a client cannot remove identity headers or the key at the gateway", async () => {
      const key = await world.records.putKey({ keyId: "key_13", permissions: ["orders.read"] });
      for (const named of [
        "X-Postern-Key-Id, X-Postern-Permissions",
        "X-Forwarded-For, X-Original-URI, X-Forwarded-Uri",
      ]) {
        const { status } = await ask("/orders", { ...bearer(key), Connection: `close, ${named}` });
        // A gateway may also reject the request, or treat the key as a hop-by-hop header.
        if (status !== 200) {
          expect([400, 401, 403], gateway.log()).toContain(status);
          continue;
        }
        expect(world.app.seen[0]?.headers, gateway.log()).toMatchObject({
          "x-postern-key-id": "key_13",
          "x-postern-permissions": "orders.read",
        });
      }
    });

    test("gateway and app treat a method in another letter case alike", async () => {
      const key = await world.records.putKey({ keyId: "key_14" });
      for (const method of ["delete", "Delete", "dELETE"]) {
        world.app.seen.length = 0;
        const { status } = await raw(gateway.port, "/orders", key, method);
        expect(status, `${method}\n${gateway.log()}`).toBeGreaterThanOrEqual(400);
        expect(world.app.seen).toEqual([]);
      }
    });

    test("gateway ignores forwarding headers of a client", async () => {
      const key = await world.records.putKey({ keyId: "key_9" });
      const lies = {
        "X-Original-URI": "/public",
        "X-Original-Method": "GET",
        "X-Original-URL": "http://x/public",
        "X-Forwarded-Uri": "/public",
        "X-Forwarded-Method": "GET",
        "X-Envoy-Original-Path": "/public",
        "X-HTTP-Method-Override": "GET",
        "X-Rewrite-URL": "/public",
      };
      for (const headers of [lies, ...Object.entries(lies).map(([name, value]) => ({ [name]: value }))]) {
        expect([400, 401], JSON.stringify(headers)).toContain((await ask("/orders", headers)).status);
        expect([400, 403]).toContain((await ask("/admin", { ...headers, ...bearer(key) })).status);
        expect([400, 403]).toContain(
          (await ask("/orders", { ...headers, ...bearer(key) }, { method: "DELETE" })).status,
        );
        expect(world.app.seen).toEqual([]);
      }
    });

    test("no spelling of a path bypasses its rule at the gateway", async () => {
      const key = await world.records.putKey({ keyId: "key_10" });
      const passed: string[] = [];
      expect((await raw(gateway.port, "/public", key)).status, gateway.log()).toBe(200);
      expect((await raw(gateway.port, "/admin", key)).status).toBe(403);
      for (const path of WAYS_INTO_ADMIN) {
        world.app.seen.length = 0;
        const response = await raw(gateway.port, path, key);
        expect(response.status, `${path}\n${gateway.log()}`).not.toBe(0);
        for (const { url } of world.app.seen) if (leadsToAdmin(url)) passed.push(`${path} as ${url}`);
      }
      expect(passed).toEqual([]);
    });

    test("client cannot choose the address that the gate evaluates", async () => {
      await world.records.putApi({ id: "api_orders", ipAllowList: ["127.0.0.0/8"] });
      try {
        const key = await world.records.putKey({ keyId: "key_11" });
        await world.records.heartbeat();
        await waitFor("the list to be known", async () => (await ask("/orders", bearer(key))).status === 200);
        await world.records.putApi({ id: "api_orders", ipAllowList: ["203.0.113.9"] });
        await waitFor("the other list to be known", async () => (await ask("/orders", bearer(key))).status === 403);
        expect((await ask("/orders", { ...bearer(key), "X-Forwarded-For": "203.0.113.9" })).status).toBe(403);
        expect((await ask("/orders", { ...bearer(key), "X-Real-IP": "203.0.113.9" })).status).toBe(403);
      } finally {
        await world.records.putApi({ id: "api_orders" });
      }
    });

    test("gateway without Redis serves cached keys and rejects unknown keys", async () => {
      const key = await world.records.putKey({ keyId: "key_12" });
      await waitFor("the key to be known", async () => (await ask("/orders", bearer(key))).status === 200);
      // A gate does not cache a key that is announced while the gate reads it, so the key is read again after the announcement.
      await sleep(1000);
      await waitFor("the key to be cached", async () => (await ask("/orders", bearer(key))).status === 200);
      await world.redis.kill("SIGKILL");
      await waitFor(
        "unknown keys to be undecided",
        async () => expected.undecided.includes((await ask("/orders", bearer("unknown-meanwhile"))).status),
        BUSY,
      );
      expect(world.app.seen).toEqual([]);
      // A gateway may time out on a busy machine and calls the gate again for the next request.
      await waitFor("the known key to be served", async () => (await ask("/orders", bearer(key))).status === 200, BUSY);
      await waitFor("what is public to be served", async () => (await ask("/public")).status === 200, BUSY);
    });

    test("gateway without the gate admits no request, not even to public paths", async () => {
      world.gate.process.kill("SIGKILL");
      await world.gate.process.exited;
      for (const path of ["/orders", "/public"]) {
        const { status } = await ask(path);
        expect(status, gateway.log()).toBeGreaterThanOrEqual(status === 403 ? 403 : 500);
        expect(world.app.seen).toEqual([]);
      }
    });
  });
}

/** A gateway on a busy machine times out several times. */
const BUSY = { deadlineMs: 60_000 };

const raw = (port: number, target: string, key: string, method = "GET"): Promise<RawResponse> =>
  sendRaw(
    port,
    `${method} ${target} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\nAuthorization: Bearer ${key}\r\n\r\n`,
  );

/**
 * Whether some app would serve a path under `/admin` for this target: an app that decodes, merges slashes and drops path parameters (which
 * servers parse before they decode).
 */
function leadsToAdmin(url: string): boolean {
  const path = (url.split(/[?#]/, 1)[0] ?? "").replace(/^https?:\/\/[^/]*/i, "").replaceAll(/;[^/]*/g, "");
  let decoded = path;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    // Apps reject targets that they cannot decode.
  }
  return [path, decoded].some((one) => {
    const segments: string[] = [];
    for (const segment of one.replaceAll("\\", "/").split("/")) {
      if (segment === "..") segments.pop();
      else if (segment !== "" && segment !== ".") segments.push(segment.replaceAll("\0", ""));
    }
    return segments[0]?.toLowerCase() === "admin";
  });
}
