import { describe, expect, test } from "vitest";
import { RELEASE } from "../core/release.ts";
import { defineCommand, type Io } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { API_SERVER_COMMANDS } from "./images/api-server-commands.ts";
import { connection, database } from "./options.ts";
import { runCommand, runImage } from "./run-command.ts";

async function run(...args: string[]) {
  const said = { out: [] as string[], notes: [] as string[] };
  const io: Io = { env: {}, out: (line) => void said.out.push(line), note: (line) => void said.notes.push(line) };
  return { code: await runCommand(COMMANDS, args, io), ...said };
}

test.each(COMMANDS)("command $name is listed with its name and summary", async ({ name, summary, load }) => {
  expect(await load()).toMatchObject({ name, summary });
});

test.each(COMMANDS)("command $name is listed in the group of its resource", async ({ group, load }) => {
  const { options } = await load();
  const callsApi = options.profile === connection.profile;
  expect(callsApi && options["database-url"] === database["database-url"]).toBe(false);
  expect(group).toBeDefined();
  if (callsApi) expect(group).toBe("api");
  if (options["database-url-file"] === database["database-url-file"]) expect(group).toBe("database");
});

test("command list contains each command once, in the group of its resource", async () => {
  const lines = (await run("--help")).out.join("\n").split("\n");
  const titles = lines.filter((line) => line.endsWith(":"));
  expect(titles).toHaveLength(4);
  for (const { name } of COMMANDS) expect(lines.filter((line) => line.startsWith(`  ${name}  `))).toHaveLength(1);
  const [api = 0, database = 0] = ["by the API", "on its database"].map((word) =>
    lines.findIndex((line) => line.includes(word)),
  );
  expect(lines.findIndex((line) => line.startsWith("  rootkey create"))).toBeGreaterThan(database);
  expect(lines.findIndex((line) => line.startsWith("  explain"))).toBeGreaterThan(api);
});

test("noun without a verb on the command line lists the noun's verbs and exits with a usage error", async () => {
  const asked = await run("rootkey", "--help");
  expect(asked.code).toBe(0);
  expect(asked.out.join("\n")).toContain("rootkey revoke");
  expect(asked.out.join("\n")).not.toContain("workspace list");
  expect(await run("rootkey")).toEqual({ ...asked, code: 2 });
});

test("--version prints the release", async () => {
  expect(await run("--version")).toEqual({ code: 0, out: [`postern ${RELEASE}`], notes: [] });
});

test.each([
  { args: ["validate", "-f", "/nowhere/x.yaml"], says: "/nowhere/x.yaml" },
  {
    args: ["simulate", "-f", "examples/quickstart", "--request", "GET /", "--fixtures", "/nowhere"],
    says: '"/nowhere": it does not exist; correct --fixtures',
  },
  {
    args: ["simulate", "-f", "examples/quickstart", "--request", "GET /", "--fixtures", "examples"],
    says: "it is a directory, not a file",
  },
  {
    args: ["key", "list", "--api", "api_1", "--api-url", "http://127.0.0.1:9", "--root-key-file", "/nowhere"],
    says: "correct --root-key-file",
  },
  { args: ["workspace", "list", "--database-url-file", "/nowhere"], says: "correct --database-url-file" },
  {
    args: ["workspace", "list", "--database-url", "postgres://127.0.0.1:9/x"],
    says: "no connection to 127.0.0.1:9: no program listens on this port; start the server",
  },
  { args: ["migrate", "--database-url", "postgres://localhost:9/x"], says: "no program listens on this port" },
])("system error is reported with the next action: $args", async ({ args, says }) => {
  const { code, out, notes } = await run(...args);
  expect([code === 0, out]).toEqual([false, []]);
  expect(notes.join("\n")).toContain(says);
  expect(notes.join("\n")).not.toMatch(/ENOENT: |connect ECONNREFUSED/);
});

test.each([
  { args: ["rootkeys"], says: '"rootkeys" (did you mean rootkey?); `postern --help`' },
  { args: ["keey", "list"], says: '"keey" (did you mean key?)' },
  { args: ["key", "lst"], says: '"key lst" (did you mean key list?); `postern key --help`' },
  { args: ["rootkey", "steal"], says: '"rootkey steal"; `postern rootkey --help`' },
])("unknown command is rejected, and the error names the help: $args", async ({ args, says }) => {
  const ran = await run(...args);
  expect(ran).toMatchObject({ code: 2, out: [] });
  expect(ran.notes.join()).toContain(says);
});

describe("the program of an image", () => {
  const wordsOf = (name: string) =>
    defineCommand({
      name,
      summary: name,
      options: { port: { type: "string", help: "port" } },
      run: async ({ port }, io) => {
        io.out(`${name} ${port}`);
        return 0;
      },
    });

  test.each([
    { args: [], runs: "serve undefined" },
    { args: ["--port", "80"], runs: "serve 80" },
    { args: ["serve", "--port", "80"], runs: "serve 80" },
    { args: ["sweep", "--port", "80"], runs: "sweep 80" },
  ])("container image runs its own command by default: $args", async ({ args, runs }) => {
    const out: string[] = [];
    const io: Io = { env: {}, out: (line) => void out.push(line), note: () => undefined };
    expect(await runImage([wordsOf("serve"), wordsOf("sweep")], args, io)).toBe(0);
    expect(out).toEqual([runs]);
  });

  test("container image lists its commands and rejects those of other images", async () => {
    const said: string[] = [];
    const io: Io = { env: {}, out: (line) => void said.push(line), note: (line) => void said.push(line) };
    expect(await runImage([wordsOf("serve"), wordsOf("sweep")], ["--help"], io)).toBe(0);
    expect(said.join("\n")).toMatch(/serve[\s\S]*sweep/);
    expect(await runImage([wordsOf("serve")], ["rootkey", "list"], io)).toBe(2);
  });
});

test("api-server image contains every command that uses the database", () => {
  const more = ["api-server", "ingest", "redis-acl"];
  const expected = COMMANDS.filter(({ name, group }) => group === "database" || more.includes(name)).map(
    ({ name }) => name,
  );
  expect(API_SERVER_COMMANDS.map(({ name }) => name).sort()).toEqual(expected.sort());
});
