import { KeyView } from "../verification/key-view.ts";

/*
 * Headers that identify the caller to the app. Only the gate may send them, so every incoming header with such a name is removed first.
 * This includes spellings that CGI-like servers map to the same variable: `X_Postern_Key_Id`, in PHP's built-in server `X.Postern.Key.Id`,
 * in old servers any other separator.
 */

const NAME = /^x[^a-z\d]postern(?:[^a-z\d]|$)/i;
const NAME_LENGTH_MIN = "x-postern".length;
const LOWER_X = 0x78;

/** Returns whether only the gate may send this header, trailer or `Connection` token. Called for every header of every request. */
export function isIdentityHeader(name: string): boolean {
  // Setting the bit 0x20 turns `X` into `x`. Nearly all header names fail this cheap test.
  return name.length >= NAME_LENGTH_MIN && (name.charCodeAt(0) | 0x20) === LOWER_X && NAME.test(name);
}

/**
 * Maximum bytes of a list. A longer list is omitted, because many servers reject more than 8 or 16 KiB of headers, and a part of a list
 * would mislead the app. X-Postern-Omitted names the omitted list.
 */
const LIST_BYTES_MAX = 4096;

/** Identity headers of a key, as alternating names and values. Lists are separated by spaces. An unset field has no header. */
export const identityHeaders: (view: KeyView) => readonly string[] = KeyView.remember(makeHeaders);

function makeHeaders({ key, identity, roles, permissions }: KeyView): string[] {
  const headers = [
    "X-Postern-Key-Id",
    headerValue(key.keyId),
    "X-Postern-Workspace-Id",
    headerValue(key.workspaceId),
    "X-Postern-Api-Id",
    headerValue(key.apiId),
  ];
  if (identity !== undefined) {
    headers.push("X-Postern-Identity-Id", headerValue(identity.id));
    headers.push("X-Postern-External-Id", headerValue(identity.externalId));
  }
  const omitted: string[] = [];
  const addList = (name: string, items: readonly string[]): void => {
    if (items.length === 0) return;
    const value = items.map(headerValue).join(" ");
    if (value.length <= LIST_BYTES_MAX) headers.push(name, value);
    else omitted.push(name);
  };
  addList("X-Postern-Roles", roles);
  addList("X-Postern-Permissions", permissions);
  if (omitted.length > 0) headers.push("X-Postern-Omitted", omitted.join(" "));
  return headers;
}

/** Characters that are always encoded in a header value: percent sign, white space, control characters, and all beyond ASCII. */
const UNSAFE = /[^\x21-\x24\x26-\x7e]+/g;

/**
 * Encodes text for a header value: the percent sign and all characters except visible ASCII become percent-encoded UTF-8. So no value can
 * end the header line, and `decodeURIComponent` restores the text (except lone surrogates, which become U+FFFD).
 */
export function headerValue(text: string): string {
  UNSAFE.lastIndex = 0;
  return UNSAFE.test(text) ? text.toWellFormed().replace(UNSAFE, encodeURIComponent) : text;
}
