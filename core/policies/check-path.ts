import type { PathAllowance } from "./policy.ts";

/*
 * The path that a gate matches must be the path that the app serves. So it is normalized as RFC 3986 section 6.2.2 describes, as
 * far as that needs no knowledge of the app (letters, digits and `-._~` are not percent-encoded, hexadecimal is upper case, bytes
 * beyond ASCII are encoded). The normalized path is matched *and* forwarded. What two servers may read differently (dot
 * segments, encoded separators, empty segments, path parameters) is refused unless the policy allows it.
 */

export interface TargetOptions {
  readonly allow: readonly PathAllowance[];
  /**
   * Whether the requirements differ by path. If they do, `;` is dangerous: an app that drops what follows it serves `/admin` for
   * `/admin;x`, but a rule for `/admin` does not match `/admin;x`.
   */
  readonly pathDecides: boolean;
}

/** `query` is empty or begins with `?`, and is forwarded unchanged. */
export type CheckedTarget = { readonly path: string; readonly query: string } | { readonly refused: string };

/**
 * Checks the target of a request line. `refused` says what is wrong, for a 400. Absolute-form is reduced to its path;
 * `*` and authority-form are refused, because no rule can match them.
 */
export function checkTarget(target: string, options: TargetOptions): CheckedTarget {
  const end = endOfPlainPath(target);
  if (end === target.length && end > 0) return { path: target, query: "" };
  if (end > 0 && target.charCodeAt(end) === QUESTION) return { path: target.slice(0, end), query: target.slice(end) };
  return checkUnusual(target, options);
}

/**
 * Returns the path of a rule, normalized like the paths of requests, or what is wrong with it: a rule with such a path would
 * never match.
 */
export function canonicalRulePath(
  path: string,
  allow: readonly PathAllowance[],
): { path: string } | { refused: string } {
  const checked = checkTarget(encodeNonAscii(path), { allow: [...allow, "Semicolon"], pathDecides: false });
  if ("refused" in checked) return checked;
  return checked.query === "" ? { path: checked.path } : { refused: "a rule's path has no query" };
}

const SLASH = 0x2f;
const QUESTION = 0x3f;
const DOT = 0x2e;

/** Characters that every server reads as themselves. `/` and `.` are among them, except directly after a slash. */
const PLAIN = new Uint8Array(128);
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/!$&'()*+,=:@") {
  PLAIN[character.charCodeAt(0)] = 1;
}

/** Returns where an origin-form path of plain characters ends: at `?`, at the end, or where a full check is needed; 0 if none begins. */
function endOfPlainPath(target: string): number {
  if (target.charCodeAt(0) !== SLASH) return 0;
  let previous = SLASH;
  let at = 1;
  for (; at < target.length; at++) {
    const character = target.charCodeAt(at);
    if (PLAIN[character] !== 1) break;
    if (previous === SLASH && (character === SLASH || character === DOT)) return at;
    previous = character;
  }
  return at;
}

function checkUnusual(target: string, { allow, pathDecides }: TargetOptions): CheckedTarget {
  const originForm = reduceToOriginForm(target);
  if (typeof originForm !== "string") return originForm;
  const question = originForm.indexOf("?");
  const rawPath = question === -1 ? originForm : originForm.slice(0, question);
  const query = question === -1 ? "" : originForm.slice(question);
  const spelt = spellCanonically(rawPath);
  if (typeof spelt !== "string") return spelt;
  for (const { allowance, found, message } of SUSPICIONS) {
    if (allowance === "Semicolon" && !pathDecides) continue;
    if (!allow.includes(allowance) && found.test(spelt)) return { refused: message };
  }
  return { path: spelt, query };
}

/** Searched in the normalized path, in this order. Each expression is linear: no repeated part can match in two ways. */
const SUSPICIONS: ReadonlyArray<{ allowance: PathAllowance; found: RegExp; message: string }> = [
  { allowance: "EncodedSlash", found: /%2F/, message: "the path has an encoded slash (%2F)" },
  { allowance: "Backslash", found: /\\|%5C/, message: "the path has a backslash" },
  { allowance: "DoubleSlash", found: /\/\//, message: "the path has an empty segment (//)" },
  { allowance: "Semicolon", found: /;/, message: "the path has a semicolon" },
  {
    // Servers that decode first read an encoded separator as a separator. Java's servlets drop what follows a semicolon.
    allowance: "DotSegments",
    found: /(?:\/|\\|%2F|%5C)\.{1,2}(?:$|[/\\;]|%2F|%5C|%3B)/,
    message: "the path has a dot segment",
  },
];

/** RFC 9112 section 3.2.2: a server must accept absolute-form too. That its authority is the one of Host is for others to see. */
function reduceToOriginForm(target: string): string | { refused: string } {
  if (target.charCodeAt(0) === SLASH) return target;
  const [scheme] = SCHEME.exec(target) ?? [];
  if (scheme === undefined) return { refused: "the request target is not a path" };
  const authority = authorityAfter(scheme, target);
  // A user is an error in it (RFC 9110, 4.2.4).
  if (authority === "" || !isHost(authority)) return { refused: "the request target has no valid authority" };
  const path = target.slice(scheme.length + authority.length);
  return path.startsWith("/") ? path : `/${path}`;
}

const SCHEME = /^https?:\/\//i;

function authorityAfter(scheme: string, target: string): string {
  const rest = target.slice(scheme.length);
  const length = rest.search(/[/?]/);
  return length === -1 ? rest : rest.slice(0, length);
}

/** Returns the authority of a target in absolute-form, whether it is valid or not; undefined for other forms. */
export function authorityOf(target: string): string | undefined {
  const [scheme] = SCHEME.exec(target) ?? [];
  return scheme === undefined ? undefined : authorityAfter(scheme, target);
}

/** RFC 3986 section 3.2.2 and 3.2.3: a name, which may be empty, or an address, and a port. */
const HOST = /^(?:\[[\w.:%~-]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/;

/** Whether a text can be the value of Host. */
export const isHost = (text: string): boolean => HOST.test(text);

const UNRESERVED = /^[A-Za-z0-9._~-]$/;

/** `rawPath` holds one byte per character, as HTTP parsers return it. */
function spellCanonically(rawPath: string): string | { refused: string } {
  let spelt = "";
  for (let at = 0; at < rawPath.length; at++) {
    const character = rawPath.charCodeAt(at);
    if (character <= 0x20 || character === 0x7f || character === HASH || character > 0xff) {
      return { refused: "the path has a character that no path may have" };
    }
    if (character === PERCENT) {
      const hex = rawPath.slice(at + 1, at + 3);
      if (!/^[0-9A-Fa-f]{2}$/.test(hex)) return { refused: "the path has a malformed percent-encoding" };
      const byte = Number.parseInt(hex, 16);
      if (byte === 0) return { refused: "the path has an encoded zero byte (%00)" };
      const decoded = String.fromCharCode(byte);
      spelt += UNRESERVED.test(decoded) ? decoded : `%${hex.toUpperCase()}`;
      at += 2;
    } else if (character >= 0x80) {
      spelt += `%${character.toString(16).toUpperCase()}`;
    } else {
      spelt += rawPath.charAt(at);
    }
  }
  return spelt;
}

const PERCENT = 0x25;
const HASH = 0x23;

/** Manifests are Unicode text; requests have it as UTF-8. */
const encodeNonAscii = (path: string): string => path.toWellFormed().replace(/[^\0-\x7f]+/g, encodeURIComponent);
