import type { Logger } from "pino";
import { FOLLOWED_FILE } from "./accepts.ts";
import { type Accepts, type OptionRow, UsageError } from "./command.ts";
import { readOptionFile } from "./system-errors.ts";

/*
 * Values that may change while a process runs, such as passwords and certificates, set by an option, a variable or a file. Files are
 * reloaded because Kubernetes replaces the files of a mounted Secret. A file is read when its value is used, at most once per second, so
 * there is no watch or timer. If the file is unreadable or invalid, the last valid value stays in use.
 */

/** Returns the current value. */
export type Followed = () => string;

const READ_EVERY_MS = 1_000;

interface FileRow {
  readonly type: "string";
  readonly placeholder: string;
  readonly help: string;
  readonly env: string;
  readonly accepts: Accepts;
}

type WithFile<N extends string, R> = { readonly [K in N]: R } & { readonly [K in `${N}-file`]: FileRow };

/** Returns the options `--x` and `--x-file` for a value that may be in a file, such as `--redis-url`. */
export function withFile<const N extends string, R extends OptionRow & { readonly env: string }>(
  name: N,
  row: R,
): WithFile<N, R> {
  const help = `file with the value of --${name}, reloaded on change`;
  const file: FileRow = { type: "string", placeholder: "PATH", help, env: `${row.env}_FILE`, accepts: FOLLOWED_FILE };
  return { [name]: row, [`${name}-file`]: file } as WithFile<N, R>;
}

export interface FollowOptions {
  /** Name of the option without `-file`, for error messages. */
  readonly name: string;
  readonly value: string | undefined;
  readonly file: string | undefined;
  readonly log: Pick<Logger, "info" | "warn">;
  /** Returns the value to use for the new text, given the last value. Throws if the text is invalid. Must be a pure function. */
  readonly accept?: (text: string, last: string | undefined) => string;
}

/**
 * Returns a function that returns the current value; `undefined` if neither the option nor the file is set. Throws `UsageError` if both are
 * set, or if the file has no valid value at startup.
 */
export function followed({ name, value, file, log, accept = (text) => text }: FollowOptions): Followed | undefined {
  if (value !== undefined && value !== "") {
    if (file !== undefined) throw new UsageError(`--${name} and --${name}-file exclude each other`);
    const accepted = accept(value, undefined);
    return () => accepted;
  }
  return file === undefined ? undefined : followFile(file, { name: `${name}-file`, log, accept });
}

/** Like `followed`, but for values that can only be set by a file, such as certificates. */
export function followFile(
  file: string,
  { name, log, accept = (text) => text }: Pick<FollowOptions, "name" | "log" | "accept">,
): Followed {
  let text = read(file, name);
  let current = accept(text, undefined);
  let readAtMs = performance.now();
  let problem: string | undefined;
  /** Last rejected text. It is not validated again, because validation may be slow. */
  let refused: string | undefined;
  return () => {
    const nowMs = performance.now();
    if (nowMs - readAtMs < READ_EVERY_MS) return current;
    readAtMs = nowMs;
    try {
      const fresh = read(file, name);
      if (fresh === refused) return current;
      refused = undefined;
      if (fresh !== text) {
        refused = fresh;
        current = accept(fresh, current);
        [text, refused] = [fresh, undefined];
        log.info({ file }, `--${name} has changed`);
      }
      problem = undefined;
    } catch (error) {
      // Omits the text from the log entry, because it is a secret.
      const message = error instanceof Error ? error.message : String(error);
      if (message !== problem)
        log.warn({ reason: message }, `--${name} is not reloaded; the last valid value stays in use`);
      problem = message;
    }
    return current;
  };
}

/**
 * Accepts a new URL only if its user, password and parameters are the only differences from the last URL. Another server may have different
 * data, and connections to both servers would mix the two.
 */
export function sameServer(text: string, last: string | undefined): string {
  const url = URL.parse(text);
  if (url === null) throw new Error("the file contains no URL");
  if (last === undefined) return text;
  const before = new URL(last);
  if (url.protocol !== before.protocol || url.host !== before.host || url.pathname !== before.pathname) {
    throw new Error("the URL names another server or database, which requires a restart");
  }
  return text;
}

function read(file: string, name: string): string {
  const text = readOptionFile(name, file).trim();
  if (text === "") throw new UsageError(`--${name} ${file} is empty`);
  return text;
}
