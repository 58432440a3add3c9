import { type Command, repetitionOf } from "../../cli/command.ts";
import { COMMANDS } from "../../cli/commands.ts";
import { worksWith } from "../../cli/options.ts";
import { VARIABLES } from "../../cli/variables.ts";
import type { Target } from "../generate.ts";

/** docs/reference/cli.md: every command with its options and environment variables, from the tables that parse them. */
export const cliReference: Target = {
  name: "command line reference",
  files: async () => {
    const commands = await Promise.all(COMMANDS.map((row) => row.load()));
    return new Map([["docs/reference/cli.md", page(commands)]]);
  },
};

function page(commands: readonly Command[]): string {
  return [
    "# Command line",
    "",
    "Generated from the commands' own tables by `npm run generate`. An option overrides the environment variable, which overrides the default.",
    "Exit codes: 0 done, 1 failed, 2 called incorrectly. A failure is one line on standard error.",
    "",
    "What `--json` prints is one line; instants are Unix milliseconds, null means no value. Names are never changed or removed in a",
    "later release; new ones may be added.",
    "",
    ...commands.flatMap(section),
    "## Environment",
    "",
    "| variable | is |",
    "| --- | --- |",
    ...VARIABLES.map(({ name, help, accepts }) => `| \`${name}\` | ${help}: ${accepts} |`),
    ...environment(commands),
    "",
  ].join("\n");
}

function section(command: Command): string[] {
  const { name, summary, description, response, options } = command;
  return [
    `## postern ${name}`,
    "",
    `${capitalised(summary)}.${description === undefined ? "" : ` ${description}`}`,
    "",
    ...[worksWith(command)].filter((text) => text !== undefined).flatMap((text) => [text, ""]),
    ...(response === undefined ? [] : [`\`--json\` prints \`${response}\`.`, ""]),
    "| option | is | default | environment |",
    "| --- | --- | --- | --- |",
    ...Object.entries(options).map(([option, row]) => {
      const flag = row.type === "boolean" ? `--${option}` : `--${option} ${row.placeholder ?? "VALUE"}`;
      const short = row.short === undefined ? "" : `\`-${row.short}\`, `;
      const byDefault = row.required === true ? "required" : row.default ? `\`${row.default}\`` : "";
      const repetition = repetitionOf(row);
      const help = repetition === undefined ? row.help : `${row.help} (${repetition})`;
      return `| ${short}\`${flag}\` | ${help} | ${byDefault} | ${row.env === undefined ? "" : `\`${row.env}\``} |`;
    }),
    "",
  ];
}

function environment(commands: readonly Command[]): string[] {
  const users = new Map<string, string[]>();
  for (const { name, options } of commands) {
    for (const [option, { env }] of Object.entries(options)) {
      if (env === undefined) continue;
      users.set(env, [...(users.get(env) ?? []), `\`${name} --${option}\``]);
    }
  }
  return [...users].sort(([a], [b]) => (a < b ? -1 : 1)).map(([env, of]) => `| \`${env}\` | ${of.join(", ")} |`);
}

const capitalised = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);
