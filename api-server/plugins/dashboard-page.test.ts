import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";
import { type FastifyInstance, fastify } from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ERROR_KINDS, PublicError } from "../../core/errors.ts";
import { registerDashboardPage } from "./dashboard-page.ts";

const PAGE = "<!doctype html><title>the page</title>";
const SCRIPT = 'document.title = "loaded";';

let folder: string;
let app: FastifyInstance;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "postern-dashboard-"));
  app = fastify();
  registerDashboardPage(app, { folder: join(folder, "dist") });
  app.setErrorHandler((error, _request, reply) =>
    reply.status(error instanceof PublicError ? ERROR_KINDS[error.kind].status : 500).send("refused"),
  );
  await app.ready();
});
afterAll(async () => {
  await app.close();
  await rm(folder, { recursive: true, force: true });
});

const get = (url: string, headers: Record<string, string> = {}) => app.inject({ method: "GET", url, headers });

test("dashboard without a build shows the build command", async () => {
  const page = await get("/dashboard/");
  expect(page.statusCode).toBe(503);
  expect(page.payload).toContain("npm run build:dashboard");
  expect(page.headers["cache-control"]).toBe("no-store");
});

describe("a built dashboard", () => {
  beforeAll(async () => {
    await mkdir(join(folder, "dist/assets"), { recursive: true });
    await writeFile(join(folder, "secret.js"), "outside");
    const files: Record<string, string | Buffer> = {
      "index.html": PAGE,
      "index.html.br": brotliCompressSync(PAGE),
      "made-from": "0123",
      "assets/main-Ab12.js": SCRIPT,
      "assets/main-Ab12.js.br": brotliCompressSync(SCRIPT),
      "assets/main-Ab12.js.gz": gzipSync(SCRIPT),
      "assets/icon-Cd34.svg": "<svg/>",
    };
    for (const [name, content] of Object.entries(files)) await writeFile(join(folder, "dist", name), content);
  });

  test("root path redirects only browsers to /dashboard/", async () => {
    const { statusCode, headers } = await get("/", { accept: "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8" });
    expect([statusCode, headers.location]).toEqual([302, "dashboard/"]);
    for (const accept of ["*/*", "application/json", "text/htmlish"])
      expect((await get("/", { accept })).statusCode).toBe(404);
    expect((await get("/")).statusCode).toBe(404);
  });

  test("dashboard without a trailing slash redirects to /dashboard/", async () => {
    const { statusCode, headers } = await get("/dashboard");
    expect([statusCode, headers.location]).toEqual([308, "dashboard/"]);
  });

  test.each(["", "keys", "apis/api_1/keys/key_2?tab=usage", "a/name.with.dots", "assetsof"])(
    "/dashboard/%s serves the page, which browsers must revalidate",
    async (path) => {
      const page = await get(`/dashboard/${path}`);
      expect([page.statusCode, page.payload]).toEqual([200, PAGE]);
      expect(page.headers).toMatchObject({ "content-type": "text/html; charset=utf-8", "cache-control": "no-cache" });
    },
  );

  test("hashed dashboard file is immutable and sent in the smallest accepted encoding", async () => {
    const of = (encodings: string) => get("/dashboard/assets/main-Ab12.js", { "accept-encoding": encodings });
    const [brotli, gzip, plain] = [await of("gzip, br"), await of("gzip"), await of("")];
    expect(brotliDecompressSync(brotli.rawPayload).toString()).toBe(SCRIPT);
    expect(gunzipSync(gzip.rawPayload).toString()).toBe(SCRIPT);
    expect(plain.payload).toBe(SCRIPT);
    expect([brotli, gzip, plain].map(({ headers }) => headers["content-encoding"])).toEqual(["br", "gzip", undefined]);
    expect(new Set([brotli, gzip, plain].map(({ headers }) => headers.etag)).size).toBe(3);
    for (const { headers } of [brotli, gzip, plain]) {
      expect(headers).toMatchObject({
        "cache-control": "public, max-age=31536000, immutable",
        "content-type": "text/javascript; charset=utf-8",
        vary: "Accept-Encoding",
      });
    }
  });

  test("request for a missing dashboard file gets 404 instead of the dashboard page", async () => {
    for (const path of ["assets/main-old.js", "assets/", "assets/main-Ab12.js.br"]) {
      expect((await get(`/dashboard/${path}`)).statusCode, path).toBe(404);
    }
  });

  test.each([
    "../secret.js",
    "..%2fsecret.js",
    "%2e%2e/secret.js",
    "%2e%2e%2fsecret.js",
    "assets/..%2f..%2fsecret.js",
    "assets%2f..%2f..%2fsecret.js",
    "..%5csecret.js",
    "%252e%252e%252fsecret.js",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "%00",
    "made-from%00.html",
    "%c0%ae%c0%ae/secret.js",
    "%",
  ])("dashboard path %s reaches no file outside the build", async (path) => {
    const response = await get(`/dashboard/${path}`);
    expect(response.payload).not.toMatch(/outside|root:|0123/);
    expect([200, 400, 404]).toContain(response.statusCode);
    if (response.statusCode === 200) expect(response.payload).toBe(PAGE);
  });

  test("dashboard serves its page instead of a file in the build folder that the page does not use", async () => {
    expect((await get("/dashboard/made-from")).payload).toBe(PAGE);
  });

  test.each(["", "assets/main-Ab12.js", "assets/missing.js"])(
    "/dashboard/%s has the content security policy",
    async (path) => {
      const { headers } = await get(`/dashboard/${path}`);
      const policy = new Map(
        String(headers["content-security-policy"])
          .split("; ")
          .map((directive) => [directive.split(" ")[0], directive.split(" ").slice(1).join(" ")]),
      );
      expect(policy.get("default-src")).toBe("'none'");
      for (const name of ["script-src", "style-src", "img-src", "connect-src"]) expect(policy.get(name)).toBe("'self'");
      for (const name of ["frame-ancestors", "base-uri", "trusted-types"]) expect(policy.get(name)).toBe("'none'");
      expect(String(headers["content-security-policy"])).not.toMatch(/unsafe|data:|https?:|\*/);
      expect(headers).toMatchObject({
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "x-frame-options": "DENY",
      });
      expect(headers["permissions-policy"]).toContain("camera=()");
    },
  );

  test("request for a dashboard file that the browser has already cached gets 304", async () => {
    const headers = { "accept-encoding": "br" };
    const first = await get("/dashboard/", headers);
    const again = await get("/dashboard/", { ...headers, "if-none-match": String(first.headers.etag) });
    expect([again.statusCode, again.payload]).toEqual([304, ""]);
  });

  test("new dashboard build is served without a restart", async () => {
    await writeFile(join(folder, "dist/assets/main-Ef56.js"), "new");
    await writeFile(join(folder, "dist/index.html"), "the next page");
    const later = new Date(Date.now() + 5000);
    await utimes(join(folder, "dist/index.html"), later, later);
    expect((await get("/dashboard/")).payload).toBe("the next page");
    expect((await get("/dashboard/assets/main-Ef56.js")).payload).toBe("new");
  });
});
