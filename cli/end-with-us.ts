import { type ChildProcess, spawn } from "node:child_process";
import { platform } from "node:os";

/*
 * Ends a child also when this process is ended in a way that it does not hear of (SIGKILL, or SIGTERM to all of a test run). A small
 * shell waits for the end of its input, which only this process holds open: the kernel closes it, whatever happens.
 */

/** `$1` the process, `$2` the signal, `$3` a word of its command line, `$4` a folder to remove when it has ended, or nothing. */
const WATCH = `
  cat > /dev/null
  ours() { case "$(ps -p "$1" -o command= 2> /dev/null)" in *"$3"*) return 0;; *) return 1;; esac; }
  ours "$@" && kill -s "$2" "$1"
  if [ -n "$4" ]; then
    while ours "$@"; do sleep 0.2; done
    rm -rf -- "$4"
  fi`;

export interface EndWithUs {
  /** Of `command`'s line: the id may belong to something else by then, which must not be ended. */
  readonly commandWord: string;
  readonly signal: "INT" | "QUIT" | "KILL";
  /** Removed when the child was ended so. */
  readonly removeFolder?: string | undefined;
  readonly runAs?: { readonly uid: number; readonly gid: number } | undefined;
}

/**
 * Watches over a child from now until it exits. Resolves when the watcher, too, is gone: who ends before that leaves it behind. Does
 * nothing where there is no `sh`.
 */
export function endWithUs(child: ChildProcess, { commandWord, signal, removeFolder, runAs }: EndWithUs): Promise<void> {
  if (child.pid === undefined || platform() === "win32") return Promise.resolve();
  const args = ["-c", WATCH, "sh", String(child.pid), signal, commandWord, removeFolder ?? ""];
  // In a session of its own: what is sent to our group does not reach it.
  const watcher = spawn("sh", args, { stdio: ["pipe", "ignore", "ignore"], detached: true, cwd: "/", ...runAs });
  const gone = new Promise<void>((resolve) => {
    watcher.once("exit", () => resolve());
    watcher.once("error", () => resolve());
  });
  watcher.stdin.on("error", () => undefined);
  // Neither the watcher nor its input keeps this process from ending.
  watcher.unref();
  (watcher.stdin as typeof watcher.stdin & { unref(): void }).unref();
  child.once("exit", () => {
    watcher.ref();
    watcher.kill("SIGKILL");
  });
  return gone;
}
