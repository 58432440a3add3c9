import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** One way to have a part: `undefined` means that it does not apply on this machine, an error that it failed. */
export type Way<T> = { name: string; attempt(): Promise<T | undefined> };

/** A part that can be had in no way. The message is one line, and ends with what to install. */
export class MissingPart extends Error {
  override name = "MissingPart";
}

/**
 * Goes through the ways in order and returns what the first one gives. An address in the environment that does not
 * work is not passed over in silence: whoever set it wants that very server, so a way whose name is a variable ends the search.
 */
export async function findPart<T>(part: string, advice: string, ways: readonly Way<T>[]): Promise<T> {
  const failures: string[] = [];
  for (const way of ways) {
    try {
      const found = await way.attempt();
      if (found !== undefined) return found;
    } catch (error) {
      failures.push(`${way.name}: ${oneLine(error)}`);
      if (/^[A-Z_]+$/.test(way.name)) break;
    }
  }
  const tried = failures.length === 0 ? "" : ` (tried ${failures.join("; ")})`;
  throw new MissingPart(`${part} is missing${tried}: ${advice}`);
}

/** The first of `names` that is an executable file in a folder of `path` (default: the PATH). */
export async function findBinary(names: readonly string[], path = process.env.PATH ?? ""): Promise<string | undefined> {
  for (const name of names) {
    for (const folder of path.split(delimiter).filter((folder) => folder !== "")) {
      const file = join(folder, name);
      if (await isExecutable(file)) return file;
    }
  }
  return undefined;
}

export async function isExecutable(file: string): Promise<boolean> {
  return await access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Whether a container engine answers here; the client alone on the PATH is not enough. */
export async function dockerAnswers(): Promise<boolean> {
  return await run("docker", ["version", "--format", "{{.Server.Version}}"], { timeout: 5_000 }).then(
    () => true,
    () => false,
  );
}

function oneLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text
    .trim()
    .replaceAll(/\s*\n\s*/g, " | ")
    .slice(0, 300);
}
