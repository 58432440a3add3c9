import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** One way to get a part: `undefined` means that it is not available on this machine, an error that it failed. */
export type Way<T> = { name: string; attempt(): Promise<T | undefined> };

/** A part that is not available in any way. The message is one line that ends with what to install. */
export class MissingPart extends Error {
  override name = "MissingPart";
}

/**
 * Tries the ways in order and returns the result of the first that succeeds. If an address in the environment does not work, the
 * search ends: the variable was set to use that very server. A way whose name is a variable is such an address.
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

/** Returns the first of `names` that is an executable file in a folder of `path` (default: the PATH). */
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

/** Whether a container engine responds here; only having the client on the PATH is not enough. */
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
