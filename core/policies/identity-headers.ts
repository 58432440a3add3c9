import type { KeyView } from "../verification/key-view.ts";

/*
 * The headers that tell the app who called. Nobody else may send them: every incoming name that looks like one is removed
 * first, also in spellings that CGI-like servers fold into the same variable: `X_Postern_Key_Id`, with PHP's own
 * server `X.Postern.Key.Id`, with old ones any character that is no letter or digit.
 */

const NAME = /^x[^a-z\d]postern(?:[^a-z\d]|$)/i;
const NAME_LENGTH_MIN = "x-postern".length;
const LOWER_X = 0x78;

/** Whether a header, trailer or `Connection` token may come from the gate alone. Asked for every header of every request. */
export function isIdentityHeader(name: string): boolean {
  // Setting the bit 0x20 makes an `X` an `x`; nearly all names are turned away here.
  return name.length >= NAME_LENGTH_MIN && (name.charCodeAt(0) | 0x20) === LOWER_X && NAME.test(name);
}

/**
 * A list longer than this is left out whole, and named in X-Postern-Omitted: many servers refuse more than 8 or 16 KiB of
 * headers, and half a list would mislead.
 */
const LIST_BYTES_MAX = 4096;

export type HeaderPair = readonly [name: string, value: string];

const headersOf = new WeakMap<KeyView, readonly HeaderPair[]>();

/** The identity headers of a key, made once per view. Lists are separated by spaces; what is not set has no header. */
export function identityHeaders(view: KeyView): readonly HeaderPair[] {
  let headers = headersOf.get(view);
  if (headers === undefined) {
    headers = makeHeaders(view);
    headersOf.set(view, headers);
  }
  return headers;
}

function makeHeaders({ key, identity, roles, permissions }: KeyView): HeaderPair[] {
  const headers: HeaderPair[] = [
    ["X-Postern-Key-Id", headerValue(key.keyId)],
    ["X-Postern-Workspace-Id", headerValue(key.workspaceId)],
    ["X-Postern-Api-Id", headerValue(key.apiId)],
  ];
  if (identity !== undefined) {
    headers.push(["X-Postern-Identity-Id", headerValue(identity.id)]);
    headers.push(["X-Postern-External-Id", headerValue(identity.externalId)]);
  }
  const omitted: string[] = [];
  const addList = (name: string, items: readonly string[]): void => {
    if (items.length === 0) return;
    const value = items.map(headerValue).join(" ");
    if (value.length <= LIST_BYTES_MAX) headers.push([name, value]);
    else omitted.push(name);
  };
  addList("X-Postern-Roles", roles);
  addList("X-Postern-Permissions", permissions);
  if (omitted.length > 0) headers.push(["X-Postern-Omitted", omitted.join(" ")]);
  return headers;
}

/** A percent sign, white space, control characters, and everything beyond ASCII. */
const UNSAFE = /[^\x21-\x24\x26-\x7e]+/g;

/**
 * A text as part of a header's value: whatever is not visible ASCII, and the percent sign itself, as percent-encoded UTF-8.
 * So no value can end a line, and decodeURIComponent always gives the text back (but for lone surrogates, which become U+FFFD).
 */
export function headerValue(text: string): string {
  UNSAFE.lastIndex = 0;
  return UNSAFE.test(text) ? text.toWellFormed().replace(UNSAFE, encodeURIComponent) : text;
}
