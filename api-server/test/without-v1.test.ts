import { afterAll, beforeAll, expect, test } from "vitest";
import { COMPONENT_IMPORTS } from "../../test/import-rules.ts";
import { importedFile, importsBelow } from "../../test/imports.ts";
import { buildTestApp, type TestApp } from "./app.ts";

/* v1 is removable: one import leads to it, and the server works without it. */

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp({ v1: "none" });
});
afterAll(() => t.close());

test("only start.ts imports v1", () => {
  const isOfV1 = (path: string) => /^api-server\/(?:plugins\/)?v1\//.test(path);
  const isTest = (path: string) => /\.test\.ts$|\/test\//.test(path);
  const importers = [...importsBelow(Object.keys(COMPONENT_IMPORTS))]
    .filter(([path]) => !isOfV1(path) && !isTest(path))
    .filter(([path, imports]) => imports.some(({ specifier }) => isOfV1(importedFile(path, specifier) ?? "")))
    .map(([path]) => path);
  expect(importers).toEqual(["api-server/start.ts"]);
});

test("v2 works without v1", async () => {
  const { apiId } = await t.data("apis.createApi", { name: "shop" });
  const { key } = await t.data("keys.createKey", { apiId });
  expect(await t.data("keys.verifyKey", { key })).toMatchObject({ valid: true, code: "VALID" });
});

test.each(["/v1/apis.getApi?apiId=api_1", "/v1/liveness", "/v1/openapi.json", "/api-reference/errors/code/NOT_FOUND"])(
  "api-server without v1 responds to %s with a v2 error and status 404",
  async (url) => {
    const response = await t.app.inject({ url });
    expect(response.statusCode).toBe(404);
    expect(response.json()).toMatchObject({
      meta: {},
      error: { status: 404, type: "https://docs.test/errors/not_found" },
    });
    expect(response.headers).not.toHaveProperty("deprecation");
  },
);
