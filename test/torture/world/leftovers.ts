import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { platform, tmpdir } from "node:os";
import { join } from "node:path";

/*
 * A run that is killed cannot stop what it started. The next run finds its folder, sees that its process is gone, and ends
 * the processes that still name that folder: in their command line (Postgres), or in their environment (all others).
 */

export const FOLDER_PREFIX = "postern-torture-";
/** In the environment of each process that a run starts, with the run's folder. */
export const FOLDER_VARIABLE = "POSTERN_TORTURE_FOLDER";

const OWNER_FILE = "owner";

/** Records the owner of the folder, until `release`, when nothing runs in it any more. */
export function claimFolder(folder: string): { release(): void } {
  const file = join(folder, OWNER_FILE);
  writeFileSync(file, `${process.pid} ${startOf(process.pid)}`);
  return { release: () => rmSync(file, { force: true }) };
}

/** Ends what dead runs left, and removes their folders. Only on Linux, because elsewhere the owner cannot be determined. */
export function endUnversioned(): void {
  if (platform() !== "linux") return;
  for (const name of readdirSync(tmpdir()).filter((each) => each.startsWith(FOLDER_PREFIX))) {
    const folder = join(tmpdir(), name);
    const [pid, start] = read(join(folder, OWNER_FILE)).split(" ");
    if (pid === undefined || start === undefined || startOf(Number(pid)) === start) continue;
    for (const each of pids()) {
      if (each !== process.pid && mentions(each, folder)) end(each);
    }
    rmSync(folder, { recursive: true, force: true });
  }
}

const pids = (): number[] =>
  readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid > 1);

const mentions = (pid: number, folder: string): boolean =>
  read(`/proc/${pid}/environ`).includes(`${FOLDER_VARIABLE}=${folder}\0`) ||
  read(`/proc/${pid}/cmdline`).includes(`${folder}/`);

/** The start time of a process, which distinguishes it from a later one with the same id. */
const startOf = (pid: number): string => read(`/proc/${pid}/stat`).split(") ").at(-1)?.split(" ")[19] ?? "gone";

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself.
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
