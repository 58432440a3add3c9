import type { Pool } from "pg";
import { expect } from "vitest";
import { type AuditFilter, type AuditRow, listAudit } from "../../api-server/db/audit.ts";
import { findWorkspace } from "../../api-server/db/workspaces.ts";
import { createPool } from "../../postgres/pool.ts";
import { createTestDatabase } from "../../test/harness/postgres.ts";
import type { Command } from "../command.ts";
import { COMMANDS } from "../commands.ts";
import { runCommand } from "../run-command.ts";

export interface Ran {
  readonly code: number;
  /** Lines of standard output and of standard error. */
  readonly out: readonly string[];
  readonly notes: readonly string[];
}

/** CLI under test, with its own database. Commands run in this process, from the arguments to the exit code. */
export interface Cli {
  readonly databaseUrl: string;
  /** Database for assertions. */
  readonly db: Pool;
  /** Runs a command, given its arguments separated by spaces. */
  run(args: string, more?: { columns?: number; env?: Record<string, string> }): Promise<Ran>;
  /** Runs a command with `--json` and returns the output. Throws unless the command succeeds with one line of the documented shape. */
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers of any shape.
  json(args: string): Promise<any>;
  /** Returns the error line of a command. Throws unless the command fails with this exit code. */
  failure(args: string, code: 1 | 2): Promise<string>;
  /** Returns the audit log of a workspace, newest first. */
  audit(filter?: { workspace?: string } & Pick<AuditFilter, "event" | "targetId">): Promise<AuditRow[]>;
  close(): Promise<void>;
}

export async function openCli(): Promise<Cli> {
  const database = await createTestDatabase();
  const db = createPool(database.url, { connectionsMax: 2 });

  const run: Cli["run"] = async (args, { columns, env = {} } = {}) => {
    const out: string[] = [];
    const notes: string[] = [];
    const code = await runCommand(COMMANDS, args.split(" "), {
      env: { DATABASE_URL: database.url, ...env },
      out: (line) => void out.push(line),
      note: (line) => void notes.push(line),
      columns,
    });
    return { code, out, notes };
  };

  return {
    databaseUrl: database.url,
    db,
    run,
    async json(args) {
      const ran = await run(`${args} --json`);
      expect(ran).toMatchObject({ code: 0, notes: [] });
      expect(ran.out).toHaveLength(1);
      const printed: unknown = JSON.parse(ran.out[0] ?? "");
      expect(outline(printed)).toBe((await commandOf(args)).response);
      return printed;
    },
    async failure(args, code) {
      const ran = await run(args);
      expect(ran).toMatchObject({ code, out: [] });
      expect(ran.notes).toHaveLength(1);
      expect(ran.notes[0]).not.toContain("\n");
      return ran.notes[0] ?? "";
    },
    async audit({ workspace = "default", ...filter } = {}) {
      const workspaceId = (await findWorkspace(db, { workspace }))?.id;
      if (workspaceId === undefined) throw new Error(`there is no workspace ${workspace}`);
      return listAudit(db, { workspaceId, ...filter, sinceMs: 0, rowsMax: 100 });
    },
    async close() {
      await db.end();
      await database.drop();
    },
  };
}

async function commandOf(args: string): Promise<Command> {
  const row = COMMANDS.find(({ name }) => `${args} `.startsWith(`${name} `));
  if (row === undefined) throw new Error(`there is no command for ${args}`);
  return row.load();
}

/**
 * Returns the output's shape in the documented form. A list is represented by its first item, which must exist; an object by its member
 * names.
 */
function outline(printed: unknown): string {
  const entries = Object.entries(printed as Record<string, unknown>);
  const isList = entries.length === 2 && entries[1]?.[0] === "hasMore";
  const parts = entries.map(([name, value], index) =>
    isList && index === 0 ? `"${name}":[${outline((value as unknown[])[0])}]` : `"${name}"`,
  );
  return `{${parts.join(",")}}`;
}
