import { expect, test } from "vitest";
import type { Io } from "./command.ts";
import { COMMANDS, runCommand } from "./commands.ts";

async function run(...args: string[]) {
  const said = { out: [] as string[], notes: [] as string[] };
  const io: Io = { env: {}, out: (line) => void said.out.push(line), note: (line) => void said.notes.push(line) };
  return { code: await runCommand(args, io), ...said };
}

test.each(COMMANDS)("$name is listed with its own name and summary", async ({ name, summary, load }) => {
  expect(await load()).toMatchObject({ name, summary });
});

test("a noun without a verb lists its verbs, and counts as called incorrectly", async () => {
  const asked = await run("rootkey", "--help");
  expect(asked.code).toBe(0);
  expect(asked.out.join("\n")).toContain("rootkey revoke");
  expect(asked.out.join("\n")).not.toContain("workspace list");
  expect(await run("rootkey")).toEqual({ ...asked, code: 2 });
});

test.each([
  { args: ["rootkeys"], says: '"rootkeys"; `postern --help`' },
  { args: ["rootkey", "steal"], says: '"rootkey steal"; `postern rootkey --help`' },
])("an unknown command is refused, and the message says where to look: $args", async ({ args, says }) => {
  const ran = await run(...args);
  expect(ran).toMatchObject({ code: 2, out: [] });
  expect(ran.notes.join()).toContain(says);
});
