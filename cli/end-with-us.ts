import { type ChildProcess, spawn } from "node:child_process";
import { platform } from "node:os";

/*
 * Ends a child also when this process is killed without notice (SIGKILL, or SIGTERM to the whole group of a test run). A small
 * shell waits for the end of its input, whose other end only this process holds: the kernel closes it in every case.
 */

/** `$1` the process, `$2` the signal, `$3` a word of its command line, `$4` a folder to remove after its end, or nothing. */
const WATCH = `
  cat > /dev/null
  ours() { case "$(ps -p "$1" -o command= 2> /dev/null)" in *"$3"*) return 0;; *) return 1;; esac; }
  ours "$@" && kill -s "$2" "$1"
  if [ -n "$4" ]; then
    while ours "$@"; do sleep 0.2; done
    rm -rf -- "$4"
  fi`;

export interface KillOnExit {
  /** A word of the child's command line: the process id may have been reused, and another process must not be ended. */
  readonly commandWord: string;
  readonly signal: "INT" | "QUIT" | "KILL";
  /** Removed when the child was ended in this way. */
  readonly removeFolder?: string | undefined;
  readonly runAs?: { readonly uid: number; readonly gid: number } | undefined;
}

/**
 * Watches a child from now until it exits. Resolves when the watcher is gone too: a process that exits earlier leaves it behind. Does
 * nothing on a system without `sh`.
 */
export function killOnExit(
  child: ChildProcess,
  { commandWord, signal, removeFolder, runAs }: KillOnExit,
): Promise<void> {
  if (child.pid === undefined || platform() === "win32") return Promise.resolve();
  const args = ["-c", WATCH, "sh", String(child.pid), signal, commandWord, removeFolder ?? ""];
  // In its own session, so that signals to our process group do not reach it.
  const watcher = spawn("sh", args, { stdio: ["pipe", "ignore", "ignore"], detached: true, cwd: "/", ...runAs });
  const gone = new Promise<void>((resolve) => {
    watcher.once("exit", () => resolve());
    watcher.once("error", () => resolve());
  });
  watcher.stdin.on("error", () => undefined);
  // Neither the watcher nor its input keeps this process running.
  watcher.unref();
  (watcher.stdin as typeof watcher.stdin & { unref(): void }).unref();
  child.once("exit", () => {
    watcher.ref();
    watcher.kill("SIGKILL");
  });
  return gone;
}
