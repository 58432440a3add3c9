import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { createPostgresSource } from "../../api-server/db/records.ts";
import { buildTestApp, type TestApp } from "../../api-server/test/app.ts";
import { makeResources, policyBody } from "../../api-server/test/resources.ts";
import { COMMANDS } from "../../cli/commands.ts";
import { runCommand } from "../../cli/run-command.ts";
import { Cases } from "../../cli/simulate/cases.ts";
import { Fixtures } from "../../cli/simulate/fixtures.ts";
import { hashKey } from "../../core/keys/key-string.ts";

/* What docs/explain.md shows: each command is run as it stands there, and prints what stands below it. */

const ROOT = resolve(import.meta.dirname, "../..");
const page = readFileSync(join(ROOT, "docs/explain.md"), "utf8");

/** Each command of the page with the output below it. */
const shown = [...page.matchAll(/^```sh\n(postern .*?)\n```\n\n```text\n(.*?)\n```/gms)].map(
  ([, line = "", output = ""]) => ({
    words: [...line.replaceAll(/\\\n\s*/g, "").matchAll(/'([^']*)'|(\S+)/g)].map(
      ([, quoted, bare = ""]) => quoted ?? bare,
    ),
    line,
    output,
  }),
);

async function run(words: readonly string[], env: Record<string, string> = {}) {
  const lines: string[] = [];
  const io = { env, out: (line: string) => void lines.push(line), note: (line: string) => void lines.push(line) };
  const code = await runCommand(COMMANDS, words, io);
  return { code, text: lines.join("\n") };
}

describe("postern simulate", () => {
  const decided = shown.filter(({ words }) => words[1] === "simulate");

  test("`postern simulate` is documented", () => expect(decided.length).toBeGreaterThan(1));

  test.each(decided)("`postern simulate` example output is correct: $line", async ({ words, output }) => {
    const inRoot = words.slice(1).map((word) => (word.startsWith("examples/") ? join(ROOT, word) : word));
    const { text } = await run(inRoot);
    expect(text.replaceAll(`${ROOT}/`, "")).toBe(output);
  });
});

describe("postern explain", () => {
  let t: TestApp;
  let url: string;
  const ids: Record<string, string> = {};
  beforeAll(async () => {
    t = await buildTestApp();
    url = await t.app.listen({ host: "127.0.0.1", port: 0 });
    const resources = makeResources(t.deps.db, {
      workspaceId: t.workspace.id,
      ask: (path, body) => t.data(path, body),
    });
    const { apiId } = await t.data("apis.createApi", { name: "orders" });
    await t.data("permissions.createRole", { name: "orders.editor", permissions: ["orders.read", "orders.write"] });
    const made = await resources.key({ apiId, name: "Billing", externalId: "premium_acme", roles: ["orders.editor"] });
    ids.key_4fGh7Jk2LmN8pQrS = made.keyId;
    await t.data("ratelimit.createNamespace", { name: "public-api" });
    const limit = { namespace: "public-api", identifier: "premium_acme", limit: 5000, duration: 3_600_000 };
    await t.data("ratelimit.setOverride", { ...limit, identifier: "premium_*", limit: 3 });
    const body = policyBody(apiId, "orders", {
      rules: [
        { match: { methods: ["GET"], path: { prefix: "/healthz" } }, access: "Anonymous" },
        {
          match: { methods: ["POST", "PUT"], path: { prefix: "/orders" } },
          permissions: "orders.write",
          ratelimits: [{ namespace: "public-api", identifier: "Identity", limit: 5000, duration: "1h" }],
        },
      ],
    });
    const { policyId, version, generation } = (await t.data("managed.applyObject", body)).policy;
    const report = { workspaceId: t.workspace.id, policyId, version, generation, stalenessMs: 640 };
    for (const podId of ["shop/a", "shop/b", "shop/c"]) await t.edge.pods.report({ ...report, podId });
    for (let i = 0; i < 3; i++) await t.data("ratelimit.limit", limit);
    // As the relay would: the gates have what Postgres has.
    const ref = { workspaceId: t.workspace.id, kind: "key", id: hashKey(made.key) } as const;
    const read = await createPostgresSource(t.deps.db).read([ref]);
    const [record] = read.usable ? read.records : [];
    if (record?.state !== "found") throw new Error("the key has no record");
    await t.edge.writer.write({ projectionId: "test", version: 1, writes: [{ ref, data: record.data }] });
    t.deps.projection.forgetAll();
  });
  afterAll(() => t.close());

  /** Ids, ages and the time until a window ends differ from run to run. */
  const plain = (text: string): string =>
    text
      .replaceAll(/\b(key|api|pol|rlns|role|rlor|ws)_[A-Za-z0-9]{8,}/g, "$1_…")
      .replaceAll(/ +(\d+(ms|s|m|h))+$/gm, " AGE")
      .replaceAll(/ {2,}/g, "  ")
      .trim();

  const explained = shown.filter(({ words }) => words[1] === "explain");

  test("`postern explain` is documented", () => expect(explained.length).toBeGreaterThan(0));

  test.each(explained)("`postern explain` example output is correct: $line", async ({ words, output }) => {
    const args = words.slice(1).map((word) => ids[word] ?? word);
    const { text } = await run(args, { POSTERN_API_URL: url, POSTERN_ROOT_KEY: t.workspace.rootKey });
    expect(plain(text)).toBe(plain(output));
  });
});

test("every field of the fixtures file and the cases file is documented", () => {
  const named = new Set<string>();
  const collect = (schema: unknown): void => {
    if (typeof schema !== "object" || schema === null) return;
    const { properties } = schema as { properties?: object };
    for (const name of Object.keys(properties ?? {})) named.add(name);
    for (const part of Object.values(schema)) collect(part);
  };
  for (const schema of [Fixtures, Cases]) collect(z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }));
  expect(named.size).toBeGreaterThan(20);
  expect([...named].filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});

test("every exit code is documented", async () => {
  const { text } = await run(["simulate", "--help"]);
  const codes = [...text.matchAll(/(\d\d) ([A-Z_]+)/g)];
  expect(codes.length).toBeGreaterThan(8);
  for (const [, exit, code] of codes) expect(page).toContain(`\n- ${exit}: \`${code}\``);
});
