import { existsSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startProcess } from "../../harness/process.ts";
import { claimFolder, endUnversioned, FOLDER_PREFIX, FOLDER_VARIABLE } from "./leftovers.ts";

const start = async (folder: string) => {
  const args = ["-e", "console.log('up'); setInterval(() => {}, 1000)"];
  const child = await startProcess(process.execPath, args, { env: { [FOLDER_VARIABLE]: folder }, readyLine: /up/ });
  onTestFinished(async () => void (await child.stop(0)));
  return child;
};

test.runIf(process.platform === "linux")(
  "cleanup ends processes of finished runs and keeps processes of active runs",
  async () => {
    const make = () => mkdtemp(join(tmpdir(), FOLDER_PREFIX));
    const [dead, living] = [await make(), await make()];
    const [left, ours] = [await start(dead), await start(living)];
    // The process id is in use, but by a process with another start time.
    writeFileSync(join(dead, "owner"), `${process.pid} 1`);
    const claim = claimFolder(living);
    onTestFinished(async () => {
      claim.release();
      await rm(living, { recursive: true });
    });
    endUnversioned();
    expect(await left.exited).toEqual({ code: null, signal: "SIGKILL" });
    expect([existsSync(dead), existsSync(living)]).toEqual([false, true]);
    expect(process.kill(ours.pid, 0)).toBe(true);
  },
);
