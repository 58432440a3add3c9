import { type ChildProcess, spawn } from "node:child_process";

export type Exit = { code: number | null; signal: NodeJS.Signals | null };

export type ProcessOptions = {
  env?: Record<string, string | undefined>;
  cwd?: string;
  /** The process counts as started when stdout or stderr (searched separately) match; without it, at once. */
  readyLine?: RegExp;
  /** How long to wait for `readyLine`; 30 s when left out. */
  readyMs?: number;
  uid?: number;
  gid?: number;
};

export type RunningProcess = {
  pid: number;
  /** What it has written so far; at most the last million characters. */
  stdout(): string;
  stderr(): string;
  /** Ends it with SIGTERM, and with SIGKILL if it still runs after `graceMs` (5 s). May be called twice. */
  stop(graceMs?: number): Promise<Exit>;
  kill(signal: NodeJS.Signals): void;
  exited: Promise<Exit>;
};

const KEPT_CHARACTERS = 1_000_000;

// The test process may end by an exception, by Ctrl-C, or because its own parent ended: no child may survive
// that. One listener serves all children, because one per child would cause Node's warning about leaks.
const running = new Set<ChildProcess>();
let guarding = false;

function guardAgainstOrphans(): void {
  if (guarding) return;
  guarding = true;
  const killAll = () => {
    for (const child of running) child.kill("SIGKILL");
  };
  process.on("exit", killAll);
  // A worker of the test runner learns of its parent's death only by this event.
  process.on("disconnect", killAll);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      killAll();
      // A listener disables the signal's default effect, so the signal is sent again unless another listener handles it.
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
    });
  }
}

/**
 * Starts `command` with `args` and resolves when it is ready. `env` is added to this process's environment; an
 * `undefined` there removes a variable. Throws with the last lines of its output when it exits, or times out,
 * before `readyLine` was seen.
 */
export async function startProcess(
  command: string,
  args: string[],
  options: ProcessOptions = {},
): Promise<RunningProcess> {
  guardAgainstOrphans();
  const { readyLine, readyMs = 30_000, cwd, uid, gid } = options;
  const child = spawn(command, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...options.env },
    ...(cwd === undefined ? {} : { cwd }),
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  });
  const output = { stdout: "", stderr: "" };
  const exited = new Promise<Exit>((resolve) => {
    child.once("close", (code, signal) => {
      running.delete(child);
      resolve({ code, signal });
    });
  });
  const failedToSpawn = new Promise<never>((_, reject) => {
    child.once("error", (error) => reject(new Error(`starting ${command}`, { cause: error })));
  });
  failedToSpawn.catch(() => undefined);

  const seenReadyLine = new Promise<void>((resolve) => {
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (text: string) => {
        output[name] = (output[name] + text).slice(-KEPT_CHARACTERS);
        if (readyLine?.test(output[name])) resolve();
      });
    }
  });
  if (child.pid === undefined) return await failedToSpawn;
  running.add(child);

  const stop = async (graceMs = 5_000): Promise<Exit> => {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), graceMs);
    const exit = await exited;
    clearTimeout(timer);
    return exit;
  };
  if (readyLine) await readyOrThrow();
  return {
    pid: child.pid,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    stop,
    kill: (signal) => void child.kill(signal),
    exited,
  };

  async function readyOrThrow(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const silent = new Promise<"silent">((resolve) => {
      timer = setTimeout(() => resolve("silent"), readyMs);
    });
    const outcome = await Promise.race([seenReadyLine, exited, silent]);
    clearTimeout(timer);
    if (outcome === undefined) return;
    const exit = outcome === "silent" ? await stop(0) : outcome;
    const how = outcome === "silent" ? `said nothing that matches ${readyLine} for ${readyMs} ms` : "ended too early";
    const lines = (output.stderr || output.stdout).trimEnd().split("\n").slice(-15).join("\n");
    throw new Error(`${command} ${how} (code ${exit.code}, signal ${exit.signal}):\n${lines}`);
  }
}
