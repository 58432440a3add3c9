import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

interface PartOut {
  readonly part: string;
  readonly state: string;
  readonly problem?: string;
  readonly help?: string;
  readonly unavailableSince?: number;
  readonly facts: Record<string, unknown>;
}

let t: TestApp;
let hung: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
  const never = () => new Promise<never>(() => undefined);
  const fails = () => Promise.reject(new Error("connect ECONNREFUSED redis://postern:hunter22@10.0.0.9:6379"));
  hung = await buildTestApp({
    deps: ({ installation }) => ({
      installation: {
        ...installation,
        encryptionKeyIds: ["another"],
        edge: {
          ...installation.edge,
          kind: "redis",
          describe: fails,
          events: installation.edge.events,
          source: installation.edge.source,
          writer: { state: never, nowMs: never } as never,
        },
      },
    }),
  });
});
afterAll(() => Promise.all([t.close(), hung.close()]));

const partsOf = async (app: TestApp): Promise<Map<string, PartOut>> => {
  const { parts } = await app.data("admin.getInstallation", {});
  return new Map(parts.map((one: PartOut) => [one.part, one]));
};

test("admin.getInstallation reports the state of each component", async () => {
  const deps = await partsOf(t);
  expect([...deps.keys()]).toEqual([
    ..."postgres redis relay projection events usage api-servers sidecars encryption certificate retention".split(" "),
  ]);
  expect(deps.get("postgres")).toMatchObject({
    state: "ok",
    facts: { migration: expect.stringMatching(/^\d{4}-.*\.sql$/) },
  });
  expect(deps.get("postgres")?.facts.sizeBytes).toBeGreaterThan(1_000_000);
  expect(deps.get("redis")).toMatchObject({ state: "off" });
  expect(deps.get("projection")).toMatchObject({ state: "ok", facts: { projectionId: "test", complete: true } });
  expect(deps.get("relay")).toMatchObject({ state: "ok", facts: { holder: "this api-server" } });
  expect(deps.get("retention")?.facts).toEqual({ auditDays: 90, deletedDays: 30 });
  expect(deps.get("api-servers")?.facts).toMatchObject({ node: process.versions.node });
});

test("admin.getInstallation reports missing encryption keys without naming API keys", async () => {
  const { apiId } = await hung.data("apis.createApi", { name: "recoverable" });
  await hung.deps.db.query("update apis set key_encryption = true where id = $1", [apiId]);
  hung.deps.projection.forgetAll();
  await hung.data("keys.createKey", { apiId, recoverable: true });
  expect((await partsOf(hung)).get("encryption")).toMatchObject({
    state: "warn",
    facts: { another: "0 keys, encrypts", test: "1 keys" },
    problem: expect.stringContaining("1 recoverable keys cannot be decrypted"),
  });
});

test("admin.getInstallation reports since when the database has been unavailable, and still responds within its time limit", async () => {
  const startedMs = performance.now();
  const first = await partsOf(hung);
  expect(performance.now() - startedMs).toBeLessThan(10_000);
  expect(first.get("postgres")).toMatchObject({ state: "ok" });
  expect(first.get("redis")).toMatchObject({ state: "away", facts: {} });
  expect(first.get("projection")).toMatchObject({ state: "away", facts: {} });
  const again = await partsOf(hung);
  expect(again.get("projection")?.unavailableSince).toBe(first.get("projection")?.unavailableSince);
  expect(JSON.stringify([...first.values()])).not.toMatch(/hunter22|10\.0\.0\.9/);
});

test("admin.getInstallation links only to existing documents", async () => {
  const all = [...(await partsOf(hung)).values(), ...(await partsOf(t)).values()];
  const helps = all.flatMap(({ help }) => help ?? []);
  expect(helps.length).toBeGreaterThan(1);
  for (const help of helps) expect(existsSync(resolve(import.meta.dirname, "../../..", help)), help).toBe(true);
});
