import { execFile } from "node:child_process";
import { access, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { MissingPart } from "./find.ts";
import { cacheFolder } from "./go-build.ts";
import { telling } from "./say.ts";

const run = promisify(execFile);

/**
 * Returns a folder whose `node_modules` has these npm packages (`name@version`), as in a user's project. The first call creates it in the
 * user's cache. Throws `MissingPart` with a hint.
 */
export async function npmWith(title: string, packages: readonly string[]): Promise<string> {
  const folder = join(
    cacheFolder(),
    packages
      .map((one) => one.replaceAll(/[@/]/g, "-"))
      .join("_")
      .replace(/^-/, ""),
  );
  if (await isThere(join(folder, "node_modules"))) return folder;
  await mkdir(cacheFolder(), { recursive: true });
  const work = await mkdtemp(`${folder}.`);
  try {
    await writeFile(join(work, "package.json"), '{ "private": true, "type": "module" }\n');
    const args = ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...packages];
    await telling({ doing: `installing ${title} into ${folder}`, takes: "half a minute" }, () =>
      run("npm", args, { cwd: work }),
    );
    await rename(work, folder);
  } catch (error) {
    await rm(work, { recursive: true, force: true });
    // Another process has created the folder first.
    if (await isThere(join(folder, "node_modules"))) return folder;
    const said = error instanceof Error ? error.message.trim().replaceAll(/\s*\n\s*/g, " | ") : String(error);
    throw new MissingPart(`${title} is missing (${said.slice(0, 300)}): let npm reach its registry`);
  }
  return folder;
}

const isThere = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );
