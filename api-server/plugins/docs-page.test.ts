import { type FastifyInstance, fastify } from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { registerDocsPage } from "./docs-page.ts";

let app: FastifyInstance;
beforeAll(async () => {
  app = fastify();
  registerDocsPage(app, { makesCalls: true });
  await app.ready();
});
afterAll(() => app.close());

const get = (url: string, headers: Record<string, string> = {}) => app.inject({ method: "GET", url, headers });

/** What the page refers to, as a browser at `/docs` resolves it. */
async function linked(): Promise<URL[]> {
  const { payload } = await get("/docs");
  return [...payload.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, url]) => new URL(url ?? "", "http://here.test/docs"));
}

describe("/docs", () => {
  test("/docs page refers only to this server", async () => {
    const page = await get("/docs");
    expect(page.statusCode).toBe(200);
    expect(page.headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(page.payload).not.toMatch(/https?:|\/\//);
    expect((await linked()).map(({ origin }) => origin)).toEqual(Array(5).fill("http://here.test"));
  });

  test("/docs page contains no inline script or style", async () => {
    const { payload } = await get("/docs");
    expect(payload).not.toMatch(/<style|style=|\son\w+=|javascript:/i);
    expect(payload.match(/<script[^>]*>[^<]/)).toBeNull();
  });

  test.each([
    { url: "/docs/swagger-ui-bundle.js", type: "text/javascript; charset=utf-8", says: "SwaggerUIBundle" },
    { url: "/docs/swagger-ui.css", type: "text/css; charset=utf-8", says: ".swagger-ui" },
    { url: "/docs/start.js", type: "text/javascript; charset=utf-8", says: 'url: "openapi.json"' },
    { url: "/docs/favicon-32x32.png", type: "image/png", says: "PNG" },
  ])("/docs asset $url is available", async ({ url, type, says }) => {
    expect((await linked()).map(({ pathname }) => pathname)).toContain(url);
    const asset = await get(url);
    expect(asset.statusCode).toBe(200);
    expect(asset.headers["content-type"]).toBe(type);
    expect(asset.headers["x-content-type-options"]).toBe("nosniff");
    expect(asset.payload).toContain(says);
  });

  test("/docs styles load nothing from other hosts", async () => {
    const { payload } = await get("/docs/swagger-ui.css");
    const urls = [...payload.matchAll(/url\(([^)]*)\)/g)].map(([, url]) => (url ?? "").replaceAll(/["']/g, ""));
    expect(urls.filter((url) => !url.startsWith("data:"))).toEqual([]);
    expect(payload).not.toContain("@import");
  });

  test("/docs serves no other files of the package", async () => {
    for (const name of [
      "package.json",
      "index.html",
      "swagger-ui.js",
      "swagger-ui-bundle.js.map",
      "..%2fpackage.json",
    ]) {
      expect((await get(`/docs/${name}`)).statusCode).toBe(404);
    }
  });

  test("/docs content security policy forbids other hosts, inline code and frames", async () => {
    const policy = new Map(
      String((await get("/docs")).headers["content-security-policy"])
        .split("; ")
        .map((directive) => [directive.split(" ")[0], directive.split(" ").slice(1)]),
    );
    expect(policy.get("default-src")).toEqual(["'none'"]);
    for (const name of ["script-src", "style-src", "connect-src"]) expect(policy.get(name)).toEqual(["'self'"]);
    expect(policy.get("img-src")).toEqual(["'self'", "data:"]);
    for (const name of ["frame-ancestors", "base-uri", "form-action"]) expect(policy.get(name)).toEqual(["'none'"]);
  });

  test("request for a /docs asset that the browser has already cached gets 304", async () => {
    const first = await get("/docs/swagger-ui.css");
    const etag = String(first.headers.etag);
    expect(first.headers["cache-control"]).toBe("no-cache");
    for (const tags of [etag, `"other", W/${etag}`, "*"]) {
      const again = await get("/docs/swagger-ui.css", { "if-none-match": tags });
      expect([again.statusCode, again.payload]).toEqual([304, ""]);
    }
    expect((await get("/docs/swagger-ui.css", { "if-none-match": '"other"' })).statusCode).toBe(200);
  });
});
