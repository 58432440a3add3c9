import type { Part, Recipe } from "./recipe.ts";

/* `postern workspace rename`. */

const CLI_REFERENCE = "docs/reference/cli.md";
const IMAGE_COMMANDS = "cli/images/api-server-commands.ts";
const ADMINISTRATION = "docs/administration.md";
const NOUN = "cli/commands/workspace.ts";
const NOUN_TEST = "cli/commands/workspace.test.ts";
const STATEMENTS = "api-server/db/workspaces.ts";
const USE_CASES = "api-server/domain/administration/workspaces.ts";

const inList: Part = {
  step: 3,
  file: "cli/commands.ts",
  after: "const ROWS = [\n",
  text: `  {
    name: "workspace rename",
    group: "database",
    load: async () => (await import("./commands/workspace.ts")).workspaceRename,
  },
`,
};
const summary: Part = {
  step: 3,
  file: "cli/summaries.ts",
  after: "export const SUMMARIES = {\n",
  text: '  "workspace rename": "Rename a workspace",\n',
};
const inImage: readonly Part[] = [
  {
    step: 3,
    file: IMAGE_COMMANDS,
    after: "  workspaceEnable,\n  workspaceList,\n",
    text: "  workspaceRename,\n",
  },
  { step: 3, file: IMAGE_COMMANDS, after: "  workspaceEnable,\n  workspaceUpdate,\n", text: "  workspaceRename,\n" },
];
const example: Part = {
  step: 4,
  file: ADMINISTRATION,
  after: "postern workspace enable --workspace acme\n",
  text: "postern workspace rename --workspace acme --name acme-corp\npostern workspace rename --workspace acme-corp --name acme\n",
};

export const addACommand: Recipe = {
  heading: "Add a command",
  parts: [
    {
      step: 1,
      file: NOUN,
      instead: "import { changeWorkspace, createWorkspace } from",
      text: "import { changeWorkspace, createWorkspace, renameWorkspace } from",
    },
    {
      step: 1,
      file: NOUN,
      instead: "export const workspaceEnable =",
      text: `export const workspaceRename = defineCommand({
  name: "workspace rename",
  options: {
    workspace: namedWorkspace,
    name: { type: "string", placeholder: "NAME", help: "its new name, which must be unique", required: true },
    ...database,
    json,
  },
  response: objectShape(workspaceFields),
  run: async (options, io) => {
    const { name } = options;
    const problem = workspaceNameProblem(name);
    if (problem !== undefined) throw new UsageError(\`--name: \${problem}\`);
    const row = await withWorkspace(options, (administrator, { id }) =>
      renameWorkspace(administrator, { workspaceId: id, name }),
    );
    if (row === undefined) throw new Error(\`a workspace \${name} exists already; give another --name\`);
    printOne(io, options, { fields: workspaceFields, row, sentence: \`workspace \${row.id} is named \${name}\` });
    return 0;
  },
});

export const workspaceEnable =`,
    },
    {
      step: 2,
      file: USE_CASES,
      after: 'import type { Queryable } from "../../../postgres/queryable.ts";\n',
      text: 'import { isUniqueViolation } from "../../../postgres/failures.ts";\n',
    },
    { step: 2, file: USE_CASES, after: "  lockWorkspace,\n", text: "  renameWorkspace as renameWorkspaceRow,\n" },
    {
      step: 2,
      file: USE_CASES,
      after: 'import { type Administrator, insertAdministration } from "./administrator.ts";\n',
      text: `
/** Returns the workspace under its new name; undefined when another has that name. Throws when there is none. */
export async function renameWorkspace(
  administrator: Administrator,
  { workspaceId, name }: { workspaceId: string; name: string },
): Promise<WorkspaceRow | undefined> {
  try {
    return await inTransaction(administrator, async (tx) => {
      const before = await lockWorkspace(tx, { workspaceId });
      if (before === undefined) throw new Error(\`workspace \${workspaceId} was deleted meanwhile\`);
      if (before.name === name) return before;
      await renameWorkspaceRow(tx, { workspaceId, name });
      const renamed = { ...before, name };
      await insertAdministration(tx, administrator, workspaceId, [
        event("update", \`Updated workspace \${workspaceId}: name \${name}\`, renamed),
      ]);
      return renamed;
    });
  } catch (error) {
    if (isUniqueViolation(error, "workspaces_name_key")) return undefined;
    throw error;
  }
}
`,
    },
    {
      step: 2,
      file: STATEMENTS,
      after: 'import type { Queryable } from "../../postgres/queryable.ts";\n',
      text: `
/** Breaks \`workspaces_name_key\` when another one has the name. */
export async function renameWorkspace(
  tx: Queryable,
  { workspaceId, name }: { workspaceId: string; name: string },
): Promise<void> {
  const text = "update workspaces set name = $2 where id = $1";
  await tx.query({ name: "rename-workspace", text, values: [workspaceId, name] });
}
`,
    },
    inList,
    summary,
    ...inImage,
    {
      step: 4,
      file: NOUN_TEST,
      after: "afterAll(() => cli.close());\n",
      text: `
describe("workspace rename", () => {
  test("gives it another name, says so in the audit log, and nothing when repeated", async () => {
    const { workspaceId } = await cli.json("workspace create --name misspelt");
    const renamed = await cli.json("workspace rename --workspace misspelt --name spelt");
    expect(renamed).toMatchObject({ workspaceId, name: "spelt" });
    const again = await cli.run("workspace rename --workspace spelt --name spelt");
    expect(again).toMatchObject({ code: 0, out: [\`workspace \${workspaceId} is named spelt\`] });
    expect(await eventsOf("spelt")).toEqual([
      \`Updated workspace \${workspaceId}: name spelt\`,
      \`Created workspace \${workspaceId}\`,
    ]);
  });

  test("fails where another one has the name, with a name that is none, and for a workspace that is not there", async () => {
    await cli.run("workspace create --name taken");
    await cli.run("workspace create --name other");
    const failure = (args: string, code: 1 | 2) => cli.failure(\`workspace rename \${args}\`, code);
    expect(await failure("--workspace other --name taken", 1)).toContain("a workspace taken exists already");
    expect(await failure("--workspace other --name=-x", 2)).toContain("--name: a name has 1 to 63 letters");
    expect(await failure("--workspace nobody --name x", 1)).toContain("there is no workspace nobody");
  });
});
`,
    },
    example,
  ],
  notTaken: { 5: "is run for all recipes" },
  lists: ["cli/commands.test.ts", "scripts/generate.test.ts"],
  about: { words: ["workspace rename", "shows every command"], files: [NOUN_TEST, "test/docs/administration.test.ts"] },
  omissions: [
    {
      what: "generating",
      leaveOut: (copy) => copy.restore(CLI_REFERENCE),
      noticedBy: { file: "scripts/generate.test.ts", says: new RegExp(CLI_REFERENCE) },
    },
    {
      what: "the example",
      leaveOut: (copy) => copy.replace(ADMINISTRATION, example.text, ""),
      noticedBy: { file: "test/docs/administration.test.ts", says: /workspace rename/ },
    },
  ],
};
