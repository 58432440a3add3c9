import { type ChildProcess, spawn } from "node:child_process";
import { platform } from "node:os";

/*
 * Kills a child process even if this process is killed with SIGKILL. A small shell waits for the end of its input: this process holds the
 * only other end, and the kernel closes it in every case.
 */

/** `$1` process id, `$2` signal, `$3` word of its command line, `$4` directory to remove afterwards or empty. */
const WATCH = `
  cat > /dev/null
  ours() { case "$(ps -p "$1" -o command= 2> /dev/null)" in *"$3"*) return 0;; *) return 1;; esac; }
  ours "$@" && kill -s "$2" "$1"
  if [ -n "$4" ]; then
    while ours "$@"; do sleep 0.2; done
    rm -rf -- "$4"
  fi`;

export interface KillOnExit {
  /** Word of the child's command line, because the process id may have been reused. */
  readonly commandWord: string;
  readonly signal: "INT" | "QUIT" | "KILL";
  /** Directory to remove after the child was killed. */
  readonly removeFolder?: string | undefined;
  readonly runAs?: { readonly uid: number; readonly gid: number } | undefined;
}

/**
 * Watches a child until it exits. Resolves when the watcher has exited too; a process that exits earlier leaves it running. Has no effect
 * on a system without `sh`.
 */
export function killOnExit(
  child: ChildProcess,
  { commandWord, signal, removeFolder, runAs }: KillOnExit,
): Promise<void> {
  if (child.pid === undefined || platform() === "win32") return Promise.resolve();
  const args = ["-c", WATCH, "sh", String(child.pid), signal, commandWord, removeFolder ?? ""];
  // A separate session, so that signals to this process group do not reach the watcher.
  const watcher = spawn("sh", args, { stdio: ["pipe", "ignore", "ignore"], detached: true, cwd: "/", ...runAs });
  const gone = new Promise<void>((resolve) => {
    watcher.once("exit", () => resolve());
    watcher.once("error", () => resolve());
  });
  watcher.stdin.on("error", () => undefined);
  // The watcher and its input do not keep this process running.
  watcher.unref();
  (watcher.stdin as typeof watcher.stdin & { unref(): void }).unref();
  child.once("exit", () => {
    watcher.ref();
    watcher.kill("SIGKILL");
  });
  return gone;
}
