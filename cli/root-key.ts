import { ROOT_KEY_LENGTH_MIN } from "../core/keys/key-string.ts";
import { UsageError } from "./command.ts";

/** One line of visible characters, which a header can carry. */
const VISIBLE = /^[\x21-\x7e]+$/;
const LENGTH_MAX = 512;

export const ROOT_KEY_WANTED = `${ROOT_KEY_LENGTH_MIN} to ${LENGTH_MAX} visible characters`;

/**
 * The root key without the end of its line. `from` is where it stands, such as `POSTERN_ROOT_KEY`, and `how` says where one comes from.
 * Throws a `UsageError` that does not show it.
 */
export function checkRootKey(text: string, from: string, how = "`postern rootkey create` makes one"): string {
  const rootKey = text.trim();
  const { length } = rootKey;
  const isVisible = VISIBLE.test(rootKey);
  if (isVisible && length >= ROOT_KEY_LENGTH_MIN && length <= LENGTH_MAX) return rootKey;
  const got = isVisible ? `${length}` : length === 0 ? "none" : "more than one line, or a space";
  throw new UsageError(`${from} has no root key: expected one line of ${ROOT_KEY_WANTED}, got ${got}; ${how}`);
}

/** One that the api-server registers at its start, and that nothing else made. */
export const checkOwnRootKey = (text: string, from: string): string =>
  checkRootKey(text, from, "`openssl rand -hex 24` makes one");

/** Where the root key of these options stands. */
export const rootKeyFrom = (options: Readonly<Record<"root-key-file", string | undefined>>): string =>
  options["root-key-file"] === undefined ? "POSTERN_ROOT_KEY" : `--root-key-file ${options["root-key-file"]}`;
