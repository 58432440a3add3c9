import { expect, test } from "vitest";
import { COMMANDS } from "../commands.ts";
import { runCommand } from "../run-command.ts";

async function run(line: string, env: Record<string, string> = {}): Promise<{ code: number; notes: string }> {
  const notes: string[] = [];
  const io = { env, out: () => undefined, note: (text: string) => void notes.push(text), columns: undefined };
  const code = await runCommand(COMMANDS, line.split(" "), io);
  return { code, notes: notes.join("\n") };
}

const operator = "operator --api-url http://127.0.0.1:1 --manifests missing";

test("one root key and a folder of them exclude each other", async () => {
  const { code, notes } = await run(`${operator} --root-keys-dir keys`, { POSTERN_ROOT_KEY: "root_0123456789" });
  expect(code).toBe(2);
  expect(notes).toContain("--root-keys-dir and POSTERN_ROOT_KEY exclude each other");
});

test("one of the two is needed", async () => {
  expect((await run(operator)).notes).toMatch(/POSTERN_ROOT_KEY.*--root-keys-dir/);
});
