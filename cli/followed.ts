import type { Logger } from "pino";
import { FOLLOWED_FILE } from "./accepts.ts";
import { type Accepts, type OptionRow, UsageError } from "./command.ts";
import { readOptionFile } from "./system-errors.ts";

/*
 * What may change while a process runs, such as a password or a certificate. Each of them is given as an option, as a variable, or as a
 * file. A file is followed, because Kubernetes replaces the files of a Secret that is mounted. It is read when the value is used, and
 * no more than once a second: no watch can miss the change, and no timer is needed. When it cannot be read, or has no valid value, the
 * last value stays.
 */

/** Returns the value of now. */
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

/** The two options of a value that may be in a file: `--redis-url` and `--redis-url-file`. */
export function withFile<const N extends string, R extends OptionRow & { readonly env: string }>(
  name: N,
  row: R,
): WithFile<N, R> {
  const help = `file with the value of --${name}, reloaded on change`;
  const file: FileRow = { type: "string", placeholder: "PATH", help, env: `${row.env}_FILE`, accepts: FOLLOWED_FILE };
  return { [name]: row, [`${name}-file`]: file } as WithFile<N, R>;
}

export interface FollowOptions {
  /** Of the option without `-file`, for messages. */
  readonly name: string;
  readonly value: string | undefined;
  readonly file: string | undefined;
  readonly log: Pick<Logger, "info" | "warn">;
  /** Throws when a text is no valid value, the same each time; returns what is used of it, given the value so far. */
  readonly accept?: (text: string, last: string | undefined) => string;
}

/** Returns undefined when neither is given. Throws `UsageError` when both are, or when the file has no valid value at the start. */
export function followed({ name, value, file, log, accept = (text) => text }: FollowOptions): Followed | undefined {
  if (value !== undefined && value !== "") {
    if (file !== undefined) throw new UsageError(`give --${name} or --${name}-file, not both`);
    const accepted = accept(value, undefined);
    return () => accepted;
  }
  return file === undefined ? undefined : followFile(file, { name: `${name}-file`, log, accept });
}

/** The file alone, for what is never a text on a command line, such as a certificate. */
export function followFile(
  file: string,
  { name, log, accept = (text) => text }: Pick<FollowOptions, "name" | "log" | "accept">,
): Followed {
  let text = read(file, name);
  let current = accept(text, undefined);
  let readAtMs = performance.now();
  let problem: string | undefined;
  /** Not looked at again, because that may take long. */
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
      // Never the text: it is a secret.
      const message = error instanceof Error ? error.message : String(error);
      if (message !== problem) log.warn({ reason: message }, `--${name} is not followed; what it was stays in use`);
      problem = message;
    }
    return current;
  };
}

/**
 * For an address with a password: only user, password and parameters may change. Elsewhere may be other data, and connections to both
 * at once would mix them.
 */
export function sameServer(text: string, last: string | undefined): string {
  const url = URL.parse(text);
  if (url === null) throw new Error("the file has no address");
  if (last === undefined) return text;
  const before = new URL(last);
  if (url.protocol !== before.protocol || url.host !== before.host || url.pathname !== before.pathname) {
    throw new Error("the address is another server or database, which needs a restart");
  }
  return text;
}

function read(file: string, name: string): string {
  const text = readOptionFile(name, file).trim();
  if (text === "") throw new UsageError(`--${name} ${file} is empty`);
  return text;
}
