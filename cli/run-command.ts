import { RELEASE } from "../core/release.ts";
import { type Command, type Io, suggestion } from "./command.ts";
import { execute } from "./execute.ts";

/** Entry of the command list. The command is loaded on demand, so that the sidecar does not load the libraries of the operator. */
export interface CommandRow {
  readonly name: string;
  readonly summary: string;
  /** Group of the command in the list of commands. */
  readonly group?: Group;
  readonly load: () => Promise<Command>;
}

const TITLES = {
  services: "Services",
  api: "Workspace commands (API, root key)",
  database: "Administration commands (database)",
  tools: "Tools",
} as const;
export type Group = keyof typeof TITLES;

/** Returns the lines of the command list, with a title per group, or one title if the commands have no groups, as in an image. */
function listed(commands: readonly CommandRow[]): string[] {
  const width = Math.max(...commands.map((command) => command.name.length));
  const lines = (of: Group | undefined) =>
    commands
      .filter(({ group }) => group === of)
      .map((command) => `  ${command.name.padEnd(width)}  ${command.summary}`);
  const groups = [[undefined, "Commands"], ...Object.entries(TITLES)] as [Group | undefined, string][];
  return groups.flatMap(([group, title]) => {
    const own = lines(group);
    return own.length === 0 ? [] : [`${title}:`, ...own, ""];
  });
}

function overview(commands: readonly CommandRow[], usage: string): string {
  return [
    "postern: API keys, roles and rate limits as Kubernetes resources, with a gate beside each pod",
    "",
    `Usage: postern ${usage} [OPTIONS]`,
    "",
    ...listed(commands),
    "Run `postern COMMAND --help` for the options of a command, `postern --version` for the version.",
  ].join("\n");
}

/** Runs the command that the arguments name. Returns the exit code: 0 success, 1 failure, 2 invalid call. */
export async function runCommand(commands: readonly CommandRow[], args: readonly string[], io: Io): Promise<number> {
  const [first = "", second = ""] = args;
  const row =
    commands.find((command) => command.name === `${first} ${second}`) ??
    commands.find((command) => command.name === first);
  if (row !== undefined) return execute(row.load, args.slice(row.name.split(" ").length), io);

  if (first === "" || first === "--help" || first === "help") {
    io.out(overview(commands, "COMMAND"));
    return first === "" ? 2 : 0;
  }
  if (first === "--version") {
    io.out(`postern ${RELEASE}`);
    return 0;
  }
  const ofNoun = commands.filter((command) => command.name.startsWith(`${first} `));
  if (ofNoun.length > 0 && (second === "" || second === "--help")) {
    io.out(overview(ofNoun, `${first} VERB`));
    return second === "" ? 2 : 0;
  }
  const named = ofNoun.length === 0 ? first : `${first} ${second}`;
  const where = ofNoun.length === 0 ? "" : `${first} `;
  const similar = suggestion(
    named,
    (ofNoun.length === 0 ? commands : ofNoun).flatMap(({ name }) => [name, name.split(" ")[0] ?? name]),
  );
  io.note(`postern: unknown command "${named}"${similar}; \`postern ${where}--help\` lists all commands`);
  return 2;
}

/**
 * Runs the program of a container image, which has a few commands. The first command is the default, so `args: [--port, "80"]` in a pod is
 * enough.
 */
export function runImage(commands: readonly [Command, ...Command[]], args: readonly string[], io: Io): Promise<number> {
  const [first = ""] = args;
  const isOwn = first === "" || (first.startsWith("-") && !["--help", "--version"].includes(first));
  const rows = commands.map((command) => ({ ...command, load: async () => command }));
  return runCommand(rows, isOwn ? [commands[0].name, ...args] : args, io);
}
