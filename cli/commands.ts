import type { Command, Io } from "./command.ts";
import { execute } from "./execute.ts";

/*
 * The one entry, `postern COMMAND`. Commands are loaded when they are called, so that the sidecar does not pay for the
 * operator's libraries. Exit codes: 0 done, 1 failed, 2 called wrongly.
 */
interface CommandRow {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

export const COMMANDS: readonly CommandRow[] = [
  {
    name: "dev",
    summary: "run all of Postern in one process, with an embedded Postgres",
    load: async () => (await import("./dev.ts")).dev,
  },
  {
    name: "api-server",
    summary: "serve the HTTP API, project changes, ingest events",
    load: async () => (await import("./api-server.ts")).apiServer,
  },
  {
    name: "operator",
    summary: "reconcile manifests of a cluster or a directory",
    load: async () => (await import("./operator.ts")).operator,
  },
  {
    name: "sidecar",
    summary: "guard an app: verify keys, enforce limits, forward",
    load: async () => (await import("./sidecar.ts")).sidecar,
  },
  {
    name: "migrate",
    summary: "bring the database to this version's schema",
    load: async () => (await import("./migrate.ts")).migrateCommand,
  },
  {
    name: "rootkey create",
    summary: "make a root key with the permissions given",
    load: async () => (await import("./rootkey.ts")).rootkeyCreate,
  },
  {
    name: "validate",
    summary: "check manifests without applying them",
    load: async () => (await import("./validate.ts")).validate,
  },
];

function overview(): string {
  const width = Math.max(...COMMANDS.map((command) => command.name.length));
  return [
    "postern: API keys, roles and rate limits as Kubernetes resources, with a gate beside every pod",
    "",
    "Usage: postern COMMAND [OPTIONS]",
    "",
    "Commands:",
    ...COMMANDS.map((command) => `  ${command.name.padEnd(width)}  ${command.summary}`),
    "",
    "`postern COMMAND --help` shows the options of a command.",
  ].join("\n");
}

/** Runs the command that the arguments name. Gives the exit code. */
export async function runCommand(args: readonly string[], io: Io): Promise<number> {
  const row =
    COMMANDS.find((command) => command.name === `${args[0]} ${args[1]}`) ??
    COMMANDS.find((command) => command.name === args[0]);
  if (row === undefined) {
    if (args.length === 0 || args[0] === "--help" || args[0] === "help") {
      io.out(overview());
      return args.length === 0 ? 2 : 0;
    }
    io.note(`postern: there is no command "${args.join(" ")}"; \`postern --help\` lists them`);
    return 2;
  }
  const rest = args.slice(row.name.split(" ").length);
  return execute(row.load, rest, io);
}
