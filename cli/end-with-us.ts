import { type ChildProcess, spawn } from "node:child_process";
import { platform } from "node:os";

/*
 * Kills a child process when this process ends, even by SIGKILL. A small shell waits for the end of its standard input, a pipe. Only this
 * process has the other end, and the kernel closes it however the process ends.
 */

/**
 * Shell script with the arguments `$1` process id, `$2` signal, `$3` expected word in the process's command line, `$4` directory to remove
 * afterwards, or empty.
 */
const WATCH = `
  cat > /dev/null
  ours() { case "$(ps -p "$1" -o command= 2> /dev/null)" in *"$3"*) return 0;; *) return 1;; esac; }
  ours "$@" && kill -s "$2" "$1"
  if [ -n "$4" ]; then
    while ours "$@"; do sleep 0.2; done
    rm -rf -- "$4"
  fi`;

export interface KillOnExit {
  /**
   * Word that the child's command line contains. If the process with the child's id lacks the word, it is another process that reused the
   * id.
   */
  readonly commandWord: string;
  readonly signal: "INT" | "QUIT" | "KILL";
  /** Directory to remove after the child is killed. */
  readonly removeFolder?: string | undefined;
  readonly runAs?: { readonly uid: number; readonly gid: number } | undefined;
}

/**
 * Watches a child until it exits. Resolves when the watcher has exited as well; if this process exits earlier, the watcher outlives it and
 * kills the child. Has no effect on a system without `sh`.
 */
export function killOnExit(
  child: ChildProcess,
  { commandWord, signal, removeFolder, runAs }: KillOnExit,
): Promise<void> {
  if (child.pid === undefined || platform() === "win32") return Promise.resolve();
  const args = ["-c", WATCH, "sh", String(child.pid), signal, commandWord, removeFolder ?? ""];
  // The watcher has its own session, so that signals to this process group do not reach it.
  const watcher = spawn("sh", args, { stdio: ["pipe", "ignore", "ignore"], detached: true, cwd: "/", ...runAs });
  const exited = new Promise<void>((resolve) => {
    watcher.once("exit", () => resolve());
    watcher.once("error", () => resolve());
  });
  watcher.stdin.on("error", () => undefined);
  // The watcher and its pipe do not keep this process running.
  watcher.unref();
  (watcher.stdin as typeof watcher.stdin & { unref(): void }).unref();
  child.once("exit", () => {
    watcher.ref();
    watcher.kill("SIGKILL");
  });
  return exited;
}
