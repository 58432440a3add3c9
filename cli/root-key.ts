import { ROOT_KEY_LENGTH_MIN } from "../core/keys/key-string.ts";
import { UsageError } from "./command.ts";

/** One line of visible characters, as in a header. */
const VISIBLE = /^[\x21-\x7e]+$/;
const LENGTH_MAX = 512;

export const ROOT_KEY_WANTED = `${ROOT_KEY_LENGTH_MIN} to ${LENGTH_MAX} visible characters`;

/**
 * Returns the root key without trailing newline. `from` is its source, such as `POSTERN_ROOT_KEY`, and `how` describes how to create one.
 * Throws a `UsageError` without the root key.
 */
export function checkRootKey(text: string, from: string, how = "`postern rootkey create` makes one"): string {
  const rootKey = text.trim();
  const { length } = rootKey;
  const isVisible = VISIBLE.test(rootKey);
  if (isVisible && length >= ROOT_KEY_LENGTH_MIN && length <= LENGTH_MAX) return rootKey;
  const got = isVisible ? `${length}` : length === 0 ? "none" : "more than one line, or a space";
  throw new UsageError(`${from} has no root key: expected one line of ${ROOT_KEY_WANTED}, got ${got}; ${how}`);
}

/** Checks a root key that the api-server registers at startup. */
export const checkOwnRootKey = (text: string, from: string): string =>
  checkRootKey(text, from, "`openssl rand -hex 24` makes one");

/** Returns the source of the root key for errors. */
export const rootKeyFrom = (options: Readonly<Record<"root-key-file", string | undefined>>): string =>
  options["root-key-file"] === undefined ? "POSTERN_ROOT_KEY" : `--root-key-file ${options["root-key-file"]}`;
