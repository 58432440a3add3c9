import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../../api-server/test/app.ts";
import { makeThings, type Things } from "../../../api-server/test/things.ts";
import { COMMANDS } from "../../commands.ts";
import { runCommand } from "../../run-command.ts";

/* Keys of another system, taken over into a real api-server. */

let t: TestApp;
let things: Things;
let url: string;
let dir: string;
beforeAll(async () => {
  t = await buildTestApp();
  things = makeThings(t.deps.db, { workspaceId: t.workspace.id, ask: (path, body) => t.data(path, body) });
  url = await t.app.listen({ host: "127.0.0.1", port: 0 });
  dir = mkdtempSync(join(tmpdir(), "postern-import-"));
});
afterAll(async () => {
  await t.close();
  rmSync(dir, { recursive: true });
});

async function run(args: string, { rootKey = t.workspace.rootKey }: { rootKey?: string } = {}) {
  const out: string[] = [];
  const notes: string[] = [];
  const io = {
    env: { POSTERN_API_URL: url, POSTERN_ROOT_KEY: rootKey },
    out: (line: string) => void out.push(line),
    note: (line: string) => void notes.push(line),
  };
  const code = await runCommand(COMMANDS, ["import", ...args.split(" ")], io);
  return { code, out, notes };
}

let files = 0;
function fileOf(text: string): string {
  const path = join(dir, `file-${files++}.yaml`);
  writeFileSync(path, text);
  return path;
}

const secretOf = (who: string): string => `a-long-key-of-another-system-${who}`;
const kong = (...who: string[]): string =>
  fileOf(
    `consumers:\n${who
      .map(
        (name) => `- { username: ${name}, acls: [{ group: gold }], keyauth_credentials: [{ key: ${secretOf(name)} }] }`,
      )
      .join("\n")}\n`,
  );
const verify = (key: string) => t.data("keys.verifyKey", { key });

test("a dry run says what would be taken over, and sends nothing", async () => {
  const file = kong("dora", "eve");
  const ran = await run(`kong --file ${file} --dry-run`, { rootKey: "" });
  expect(ran).toMatchObject({ code: 0, notes: [] });
  expect(ran.out[0]).toBe("2 keys can be taken over, 0 cannot. Nothing was sent.");
  expect(ran.out[2]).toMatch(/^consumer dora, key 1 +dora +dora +gold$/);
  expect(JSON.stringify(ran)).not.toContain(secretOf("dora"));
  expect(await verify(secretOf("dora"))).toMatchObject({ valid: false, code: "NOT_FOUND" });
});

test("keys are taken over with owner and roles, verify from then on, and a second run changes nothing", async () => {
  const apiId = await things.api();
  const file = kong("alice", "bob");
  const first = await run(`kong --file ${file} --api-id ${apiId} --json`);
  expect(first).toMatchObject({ code: 0, notes: [] });
  expect(JSON.parse(first.out[0] ?? "")).toEqual({
    found: 2,
    imported: 2,
    left: [],
    notes: [],
    short: 0,
    migrationId: expect.stringMatching(/^mig_/),
  });
  expect(await verify(secretOf("alice"))).toMatchObject({
    valid: true,
    name: "alice",
    identity: { externalId: "alice" },
    roles: ["gold"],
  });
  const second = await run(`kong --file ${file} --api-id ${apiId}`);
  expect(second.code).toBe(1);
  expect(second.out).toEqual(["0 keys taken over, 2 not."]);
  expect(second.notes).toEqual([
    "not taken over: consumer alice, key 1: exists already; nothing was changed",
    "not taken over: consumer bob, key 1: exists already; nothing was changed",
  ]);
});

test("what the API would refuse is said by a dry run, too, and the rest is taken over in portions", async () => {
  const apiId = await things.api();
  const names = Array.from({ length: 450 }, (_, i) => `many${i}`);
  const tooLong = "x".repeat(256);
  const file = kong(tooLong, ...names);
  const dry = JSON.parse((await run(`kong --file ${file} --dry-run --json`)).out[0] ?? "");
  const real = await run(`kong --file ${file} --api-id ${apiId} --json`);
  const done = JSON.parse(real.out[0] ?? "");
  expect(done).toMatchObject({ found: 451, imported: 450 });
  expect(dry.left).toEqual([{ from: `consumer ${tooLong}, key 1`, why: expect.stringMatching(/^name: /) }]);
  expect(done.left).toEqual(dry.left);
  expect(real.notes).toEqual([]);
  for (const name of ["many0", "many449"]) expect(await verify(secretOf(name))).toMatchObject({ valid: true });
});

test("short keys are named as what they are", async () => {
  const ran = await run(
    `kong --file ${fileOf("consumers: [{ username: a, keyauth_credentials: [{ key: abc }] }]")} --dry-run`,
  );
  expect(ran.notes).toEqual([expect.stringContaining("1 key of fewer than 22 characters")]);
});

test.each([
  { args: "kong --dry-run", code: 2, says: "--file is missing" },
  { args: "kong --file F", code: 2, says: "--api-id is missing" },
  { args: "kong --file F --api-id api_gone", code: 1, says: "api_gone" },
  { args: "kuadrant --file F --dry-run", code: 1, says: "has no key of Kuadrant" },
  { args: "kong --file /nowhere --dry-run", code: 1, says: "/nowhere" },
] as const)("refuses $args", async ({ args, code, says }) => {
  const ran = await run(args.replace(" F", ` ${kong("alice")}`));
  expect(ran).toMatchObject({ code, out: [] });
  expect(ran.notes).toEqual([expect.stringContaining(says)]);
});

test("a root key that may not create keys is told so, and no key stands in the message", async () => {
  const apiId = await things.api();
  const rootKey = await t.rootKey(["api.*.read_key"]);
  const ran = await run(`kong --file ${kong("carol")} --api-id ${apiId}`, { rootKey });
  expect(ran.code).toBe(1);
  expect(ran.notes.join()).toContain("create_key");
  expect(JSON.stringify(ran)).not.toContain(secretOf("carol"));
});
