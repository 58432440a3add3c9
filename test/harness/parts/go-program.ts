import { createHash } from "node:crypto";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { findPart, isExecutable } from "./find.ts";
import { buildOnce, cacheFolder, type Go } from "./go-build.ts";

const TEST = resolve(import.meta.dirname, "../..");

export interface GoProgram {
  readonly name: string;
  /** Source file below `test/`. */
  readonly source: string;
  /** Imported modules as `path@version`. */
  readonly modules: readonly string[];
  /** Path of a `go.sum` below `test/`, for modules that the Go checksum database may lack. */
  readonly sums?: string;
}

/** Returns the path of a small Go test program, built into the user's cache once per version. */
export async function findGoProgram({ name, source, modules, sums }: GoProgram): Promise<string> {
  const text = await readFile(join(TEST, source), "utf8");
  const version = createHash("sha256")
    .update(JSON.stringify([text, modules]))
    .digest("hex")
    .slice(0, 12);
  const folder = join(cacheFolder(), `${name}-${version}`);
  const built = async () => ((await isExecutable(join(folder, name))) ? folder : undefined);
  const build = async ({ work, go }: Go) => {
    await writeFile(join(work, "go.mod"), "module postern.test/program\n\ngo 1.24.0\n");
    await writeFile(join(work, "main.go"), text);
    if (sums !== undefined) await copyFile(join(TEST, sums), join(work, "go.sum"));
    await go(["get", ...modules, "."]);
    await go(["build", "-o", join("bin", name), "-ldflags", "-s -w", "."]);
  };
  const found = await findPart(name, "install Go 1.25 or newer, or python3 with venv, so that it can be built", [
    { name: "the cache", attempt: built },
    { name: "Go build", attempt: () => buildOnce({ what: name, folder, built, build }) },
  ]);
  return join(found, name);
}
