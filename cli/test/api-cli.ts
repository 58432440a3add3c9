import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildTestApp, type TestApp } from "../../api-server/test/app.ts";
import { makeResources, type Resources } from "../../api-server/test/resources.ts";
import type { Io } from "../command.ts";
import { COMMANDS } from "../commands.ts";
import { runCommand } from "../run-command.ts";

/** Inputs of a command run, in addition to its arguments. */
export interface RunOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly columns?: number;
  /** Text to send to standard input. */
  readonly stdin?: string;
  /** Text to type at a prompt. */
  readonly typed?: string;
}

export interface RanText {
  readonly code: number;
  /** Complete standard output. */
  readonly text: string;
  readonly out: readonly string[];
  readonly notes: readonly string[];
}

/** Runs `postern` in this process with no environment variables. */
export async function runPostern(args: readonly string[], options: RunOptions = {}): Promise<RanText> {
  const { env = {}, columns, stdin = "", typed } = options;
  const notes: string[] = [];
  let text = "";
  const io: Io = {
    env,
    columns,
    out: (line) => {
      text += `${line}\n`;
    },
    write: (part) => {
      text += part;
    },
    note: (line) => void notes.push(line),
    input: {
      isTerminal: typed !== undefined,
      read: async (bytesMax) => {
        if (Buffer.byteLength(stdin) > bytesMax) throw new Error(`standard input has more than ${bytesMax} bytes`);
        return stdin;
      },
      ask: async (prompt) => {
        notes.push(prompt);
        return typed ?? "";
      },
    },
  };
  const code = await runCommand(COMMANDS, args, io);
  return { code, text, out: text === "" ? [] : text.replace(/\n$/, "").split("\n"), notes };
}

/** CLI under test, with its own api-server and database, and a directory for profiles. */
export interface ApiCli {
  readonly t: TestApp;
  readonly resources: Resources;
  readonly url: string;
  /** Empty directory to use as `XDG_CONFIG_HOME`. */
  readonly configHome: string;
  /** Runs a command with the root key of the first workspace in the environment. */
  run(args: readonly string[], options?: RunOptions): Promise<RanText>;
  /** Runs a command with `--json` and returns the output. Throws unless the exit code matches and the output is one line. */
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of any shape.
  json(args: readonly string[], code?: number): Promise<any>;
  /** Returns the environment of a command that uses another root key. */
  as(rootKey: string): { env: Record<string, string> };
  close(): Promise<void>;
}

export async function openApiCli(): Promise<ApiCli> {
  const t = await buildTestApp();
  const url = await t.app.listen({ host: "127.0.0.1", port: 0 });
  const configHome = mkdtempSync(join(tmpdir(), "postern-config-"));
  const as = (rootKey: string) => ({
    env: { XDG_CONFIG_HOME: configHome, POSTERN_API_URL: url, POSTERN_ROOT_KEY: rootKey, DATABASE_URL: t.databaseUrl },
  });
  const run: ApiCli["run"] = (args, options = {}) => runPostern(args, { ...as(t.workspace.rootKey), ...options });
  return {
    t,
    resources: makeResources(t.deps.db, { workspaceId: t.workspace.id, ask: (path, body) => t.data(path, body) }),
    url,
    configHome,
    run,
    as,
    async json(args, code = 0) {
      const ran = await run([...args, "--json"]);
      if (ran.code !== code || ran.out.length !== 1) {
        throw new Error(`exit code ${ran.code}, ${ran.out.length} lines: ${ran.notes.join("\n")}`);
      }
      return JSON.parse(ran.text);
    },
    async close() {
      await t.close();
      rmSync(configHome, { recursive: true });
    },
  };
}
