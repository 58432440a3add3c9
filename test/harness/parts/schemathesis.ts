import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { findBinary, isExecutable, MissingPart } from "./find.ts";
import { cacheFolder } from "./kubernetes-build.ts";

const run = promisify(execFile);

/** Another version finds other problems: read its findings when you raise it. */
const VERSION = "4.32.5";

const ADVICE = "install python3 (3.11 or newer) with its venv module";

/** A command and its first arguments; the caller's arguments follow. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
}

/**
 * Returns the command of Schemathesis, which sends an API what its OpenAPI document allows and what it does not. It is installed into
 * a virtual environment in the user's cache by the first call. Throws `MissingPart` with what to install.
 */
export async function schemathesis(): Promise<Command> {
  const folder = join(cacheFolder(), `schemathesis-${VERSION}`);
  const python = join(folder, "bin", "python");
  if (!(await isExecutable(python))) await install(folder);
  // Not bin/schemathesis: that names the folder in which it was installed.
  return { file: python, args: ["-m", "schemathesis.cli"] };
}

/** Installs into a temporary folder and renames at the end: it appears complete or not at all, also with concurrent installs. */
async function install(folder: string): Promise<void> {
  const python = await findBinary(["python3"]);
  if (python === undefined) throw new MissingPart(`Schemathesis is missing: ${ADVICE}`);
  process.stderr.write(`harness: installing schemathesis ${VERSION} into ${folder}, once\n`);
  await mkdir(cacheFolder(), { recursive: true });
  const work = await mkdtemp(`${folder}.`);
  try {
    const options = { maxBuffer: 16 * 1024 * 1024 };
    await run(python, ["-m", "venv", work], options);
    await run(join(work, "bin", "python"), ["-m", "pip", "install", "--quiet", `schemathesis==${VERSION}`], options);
    await rename(work, folder);
  } catch (error) {
    await rm(work, { recursive: true, force: true });
    // Another process was faster.
    if (["ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) return;
    const said = error instanceof Error ? error.message.trim().replaceAll(/\s*\n\s*/g, " | ") : String(error);
    throw new MissingPart(`Schemathesis is missing (${said.slice(0, 300)}): ${ADVICE}, and let pip reach its index`);
  }
}
