import { randomBytes } from "node:crypto";
import { mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A cgroup that kills what exceeds its memory, as a pod's does. */
export interface MemoryBound {
  /** A command that runs `command` within the bound. */
  within(command: string, args: readonly string[]): { command: string; args: string[] };
  /** The most that was charged, in bytes: anonymous memory and the page cache, which the kernel takes back under pressure. */
  peakBytes(): Promise<number>;
  close(): Promise<void>;
}

interface Version {
  readonly root: string;
  readonly limit: string;
  readonly peak: string;
}

const VERSIONS: readonly Version[] = [
  { root: "/sys/fs/cgroup/memory", limit: "memory.limit_in_bytes", peak: "memory.max_usage_in_bytes" },
  { root: "/sys/fs/cgroup", limit: "memory.max", peak: "memory.peak" },
];

/** Returns undefined where this process may not make a cgroup; then only the resident memory can be measured. */
export async function openMemoryBound(bytes: number): Promise<MemoryBound | undefined> {
  for (const { root, limit, peak } of VERSIONS) {
    const dir = join(root, `postern-test-${randomBytes(4).toString("hex")}`);
    try {
      await mkdir(dir);
    } catch {
      continue;
    }
    const close = () => rmdir(dir);
    try {
      await writeFile(join(dir, limit), String(bytes));
    } catch {
      await close();
      continue;
    }
    return {
      within: (command, args) => ({
        command: "sh",
        args: ["-c", `echo $$ > ${dir}/cgroup.procs && exec "$@"`, "sh", command, ...args],
      }),
      peakBytes: async () => Number(await readFile(join(dir, peak), "utf8")),
      close,
    };
  }
  return undefined;
}
