import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A method to obtain a service: `undefined` means unavailable on this machine, an error means failed. */
export type Way<T> = { name: string; attempt(): Promise<T | undefined> };

/** A service that no method provides. The message is one line that ends with an installation hint. */
export class MissingPart extends Error {
  override name = "MissingPart";
}

/**
 * Tries the methods in order and returns the first result. If an address in the environment does not work, the search ends, because the
 * variable selects that very server. A method named like a variable is such an address.
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

/** Whether a container engine responds; a client on the PATH alone is insufficient. */
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
