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

test("operator rejects a root key together with a folder of root keys", async () => {
  const { code, notes } = await run(`${operator} --root-keys-dir keys`, {
    POSTERN_ROOT_KEY: "root_0123456789abcdefghijk",
  });
  expect(code).toBe(2);
  expect(notes).toContain("--root-keys-dir excludes POSTERN_ROOT_KEY");
});

test("operator requires a root key or a folder of root keys", async () => {
  expect((await run(operator)).notes).toMatch(/POSTERN_ROOT_KEY.*--root-key-file.*--root-keys-dir/);
});

const once = { POSTERN_ROOT_KEY: "root_0123456789abcdefghijk" };

test.each([
  { option: "--resync-interval 10ms", says: "for --resync-interval: must be a duration" },
  { option: "--resync-interval 30d", says: "1s to 168h" },
  { option: "--concurrency 0", says: "for --concurrency: must be an integer from 1 to 100" },
  { option: "--log-format xml", says: "for --log-format: must be json or text" },
  { option: "--cluster a/b", says: "for --cluster: must be a name" },
  { option: "--controller-class blue", says: "--controller-class is for a cluster" },
])("operator command rejects $option", async ({ option, says }) => {
  const { code, notes } = await run(`${operator} ${option}`, once);
  expect(code).toBe(2);
  expect(notes).toContain(says);
});
