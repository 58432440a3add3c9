import { ROOT_KEY_LENGTH_MIN } from "../core/keys/key-string.ts";
import { UsageError } from "./command.ts";

/** Visible ASCII characters, the only characters of a root key. */
const VISIBLE = /^[\x21-\x7e]+$/;
const LENGTH_MAX = 512;

export const ROOT_KEY_WANTED = `${ROOT_KEY_LENGTH_MIN} to ${LENGTH_MAX} visible characters`;

/**
 * Returns the root key without a trailing newline. `from` names its source, such as `POSTERN_ROOT_KEY`, and `how` describes how to create
 * one. The `UsageError` does not contain the root key.
 */
export function checkRootKey(text: string, from: string, how = "`postern rootkey create` creates one"): string {
  const rootKey = text.trim();
  const { length } = rootKey;
  const isVisible = VISIBLE.test(rootKey);
  if (isVisible && length >= ROOT_KEY_LENGTH_MIN && length <= LENGTH_MAX) return rootKey;
  const got = isVisible ? `${length}` : length === 0 ? "none" : "more than one line, or a space";
  throw new UsageError(`${from} has no root key: expected one line of ${ROOT_KEY_WANTED}, got ${got}; ${how}`);
}

/** Validates a root key that the api-server registers at startup. */
export const checkOwnRootKey = (text: string, from: string): string =>
  checkRootKey(text, from, "`openssl rand -hex 24` creates one");

/** Returns the source of the root key for error messages. */
export const rootKeyFrom = (options: Readonly<Record<"root-key-file", string | undefined>>): string =>
  options["root-key-file"] === undefined ? "POSTERN_ROOT_KEY" : `--root-key-file ${options["root-key-file"]}`;
