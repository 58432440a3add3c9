import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { UsageError } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { checkRootKey } from "./root-key.ts";
import { runCommand } from "./run-command.ts";

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "postern-root-key-"));
});
afterAll(() => rmSync(dir, { recursive: true }));

async function run(line: string, env: Record<string, string>): Promise<{ code: number; notes: string }> {
  const notes: string[] = [];
  const io = { env, out: () => undefined, note: (text: string) => void notes.push(text), columns: undefined };
  const code = await runCommand(COMMANDS, line.split(" "), io);
  return { code, notes: notes.join("\n") };
}

const SHORT = "much-too-short";

test.each([
  { line: "dev", how: "openssl rand -hex 24" },
  { line: "api-server --database-url postgres://127.0.0.1:1/x --redis-url redis://127.0.0.1:1", how: "openssl" },
  { line: "operator --api-url http://127.0.0.1:1 --manifests missing", how: "postern rootkey create" },
  { line: "key list --api-url http://127.0.0.1:1 --api api_1", how: "postern rootkey create" },
])("$line with a root key that is too short is a usage error and starts no process", async ({ line, how }) => {
  const data = line === "dev" ? ` --data-dir ${dir}` : "";
  const { code, notes } = await run(line + data, { POSTERN_ROOT_KEY: SHORT });
  expect({ code, notes }).toMatchObject({
    code: 2,
    notes: expect.stringContaining(
      "POSTERN_ROOT_KEY has no root key: expected one line of 22 to 512 visible characters, got 14; ",
    ),
  });
  expect(notes).toContain(how);
  expect(notes).not.toContain(SHORT);
});

test("error for a root key that is too short names its file", async () => {
  const file = join(dir, "key");
  writeFileSync(file, `${SHORT}\n`);
  const { code, notes } = await run(`operator --api-url http://127.0.0.1:1 --root-key-file ${file}`, {});
  expect(code).toBe(2);
  expect(notes).toContain(`--root-key-file ${file} has no root key`);
});

test.each([
  { name: "the shortest", text: "k".repeat(22), key: "k".repeat(22) },
  { name: "the longest", text: "k".repeat(512), key: "k".repeat(512) },
  { name: "the end of its line", text: `${"k".repeat(30)}\r\n`, key: "k".repeat(30) },
])("root key check accepts $name", ({ text, key }) => expect(checkRootKey(text, "x")).toBe(key));

test.each([
  { name: "one character less", text: "k".repeat(21), got: "got 21;" },
  { name: "one more", text: "k".repeat(513), got: "got 513;" },
  { name: "nothing", text: " \n", got: "got none;" },
  { name: "two lines", text: `${"k".repeat(30)}\n${"l".repeat(30)}`, got: "more than one line" },
  { name: "a control character", text: `${"k".repeat(30)}\u001b[31m`, got: "more than one line, or a space" },
])("root key check rejects $name without printing it", ({ text, got }) => {
  let said = "";
  try {
    checkRootKey(text, "x");
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    said = (error as Error).message;
  }
  expect(said).toContain(got);
  expect(said).not.toContain("kk");
});
