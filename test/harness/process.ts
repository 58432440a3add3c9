import { type ChildProcess, spawn } from "node:child_process";
import { resolve } from "node:path";

/**
 * The file that runs `postern`: the sources, or the bundle that `make test` and `make test-all` build (`TEST_PROGRAM`).
 */
export const PROGRAM = process.env.TEST_PROGRAM ?? resolve(import.meta.dirname, "../../cli/main.ts");

export type Exit = { code: number | null; signal: NodeJS.Signals | null };

export type ProcessOptions = {
  env?: Record<string, string | undefined>;
  cwd?: string;
  /** The process has started when stdout or stderr (searched separately) matches; default: immediately. */
  readyLine?: RegExp;
  /** Timeout for `readyLine`. Default: 30 s. */
  readyMs?: number;
  uid?: number;
  gid?: number;
};

export type RunningProcess = {
  pid: number;
  /** Output so far, up to the last million characters. */
  stdout(): string;
  stderr(): string;
  /** Sends SIGTERM, and SIGKILL after `graceMs` (5 s). Repeatable. */
  stop(graceMs?: number): Promise<Exit>;
  kill(signal: NodeJS.Signals): void;
  exited: Promise<Exit>;
};

const KEPT_CHARACTERS = 1_000_000;

// No child may survive the test process, even after an exception, Ctrl-C or the end of its parent. One listener serves all children,
// because one per child would cause Node's leak warning.
const running = new Set<ChildProcess>();
let guarding = false;

function guardAgainstOrphans(): void {
  if (guarding) return;
  guarding = true;
  const killAll = () => {
    for (const child of running) child.kill("SIGKILL");
  };
  process.on("exit", killAll);
  // A test worker detects the death of its parent by this event only.
  process.on("disconnect", killAll);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      killAll();
      // A listener disables the default effect of the signal, so the signal is sent again unless another listener handles it.
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
    });
  }
}

/**
 * Starts `command` with `args` and resolves when it is ready. `env` extends the environment of this process; `undefined` removes a
 * variable. Throws with the last output lines if the command exits or times out before `readyLine`.
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
