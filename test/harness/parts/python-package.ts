import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { findBinary, isExecutable, MissingPart } from "./find.ts";
import { cacheFolder } from "./go-build.ts";
import { telling } from "./say.ts";

const run = promisify(execFile);

export interface PythonPackage {
  /** Package name for pip. */
  readonly name: string;
  readonly version: string;
  /** Name in the error message. */
  readonly title: string;
  /** Further packages of the environment as `name==version`. */
  readonly and?: readonly string[];
  /** Whether dependencies are omitted, for a package of which the tests use a part. */
  readonly alone?: boolean;
}

const ADVICE = "install python3 (3.11 or newer) with its venv module";

/**
 * Returns the Python of a virtual environment with the package, which the first call creates in the user's cache. Call a module with `-m`,
 * because programs in its `bin` contain the folder of their installation. Throws `MissingPart` with an installation hint.
 */
export async function pythonWith(wanted: PythonPackage): Promise<string> {
  const others = (wanted.and ?? []).map((one) => `-${one.replace("==", "-")}`);
  const folder = join(cacheFolder(), `${wanted.name}-${wanted.version}${others.join("")}`);
  const python = join(folder, "bin", "python");
  if (!(await isExecutable(python))) await install(folder, wanted);
  return python;
}

/**
 * Installs into a temporary folder and renames it at the end, so that the environment is complete or missing even with concurrent installs.
 */
async function install(
  folder: string,
  { name, version, title, and = [], alone = false }: PythonPackage,
): Promise<void> {
  const python = await findBinary(["python3"]);
  if (python === undefined) throw new MissingPart(`${title} is missing: ${ADVICE}`);
  await mkdir(cacheFolder(), { recursive: true });
  const work = await mkdtemp(`${folder}.`);
  try {
    const options = { maxBuffer: 16 * 1024 * 1024 };
    const pip = ["-m", "pip", "install", "--quiet", ...(alone ? ["--no-deps"] : []), `${name}==${version}`, ...and];
    await telling({ doing: `installing ${name} ${version} into ${folder}`, takes: "a minute or so" }, async () => {
      await run(python, ["-m", "venv", work], options);
      await run(join(work, "bin", "python"), pip, options);
    });
    await rename(work, folder);
  } catch (error) {
    await rm(work, { recursive: true, force: true });
    // Another process has created the folder first.
    if (["ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) return;
    const said = error instanceof Error ? error.message.trim().replaceAll(/\s*\n\s*/g, " | ") : String(error);
    throw new MissingPart(`${title} is missing (${said.slice(0, 300)}): ${ADVICE}, and let pip reach its index`);
  }
}
