import type { PathAllowance } from "./policy.ts";

/*
 * The path that a gate matches must be the path that the app serves. So every path has one canonical spelling, which is matched *and*
 * forwarded: the characters of RFC 3986 `pchar` are literal, all others are upper-case percent-encodings. Paths that two servers may
 * interpret differently (dot segments, encoded separators, control characters, …) are rejected unless the policy allows them.
 */

export interface TargetOptions {
  readonly allow: readonly PathAllowance[];
  /**
   * Whether the requirements depend on the path. If they do not, no spelling can evade a rule, so the check is lenient: it accepts `;`,
   * control characters and bytes that are not UTF-8, and leaves sub-delimiters as the client encoded them, because an app may have signed
   * them.
   */
  readonly pathDecides: boolean;
}

/** `query` is empty or begins with `?`, and is forwarded unchanged. */
export type CheckedTarget = { readonly path: string; readonly query: string } | { readonly refused: string };

/**
 * Checks the target of a request line. `refused` is the error message for a 400. Absolute-form is reduced to its path; `*` and
 * authority-form are rejected, because no rule can match them.
 */
export function checkTarget(target: string, options: TargetOptions): CheckedTarget {
  const end = endOfPlainPath(target);
  if (end === target.length && end > 0) return { path: target, query: "" };
  if (end > 0 && target.charCodeAt(end) === QUESTION) return { path: target.slice(0, end), query: target.slice(end) };
  return checkUnusual(target, options);
}

/**
 * Returns the path of a rule, normalized like the paths of requests, or an error message if no request can have the path, because the rule
 * would never match.
 */
export function canonicalRulePath(
  path: string,
  allow: readonly PathAllowance[],
): { path: string } | { refused: string } {
  const checked = checkTarget(encodeNonAscii(path), { allow: [...allow, "Semicolon"], pathDecides: true });
  if ("refused" in checked) return checked;
  return checked.query === "" ? { path: checked.path } : { refused: "a rule's path has no query" };
}

const SLASH = 0x2f;
const QUESTION = 0x3f;
const DOT = 0x2e;

const PERCENT = 0x25;

const UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
const tableOf = (characters: string): Uint8Array => {
  const table = new Uint8Array(256);
  for (const character of characters) table[character.charCodeAt(0)] = 1;
  return table;
};
/** Characters that are equivalent to their percent-encodings (RFC 3986, section 6.2.2.2). */
const IS_UNRESERVED = tableOf(UNRESERVED);
/**
 * Characters of `pchar` except percent-encodings (RFC 3986, section 3.3). Routers compare decoded paths, so a client may encode any of
 * them.
 */
const IS_PCHAR = tableOf(`${UNRESERVED}!$&'()*+,;=:@`);
/** Characters that every server reads literally. `/` and `.` are among them, except directly after a slash. */
const PLAIN = tableOf(`${UNRESERVED}/!$&'()*+,=:@`);

/**
 * Returns the index at which an origin-form path of plain characters ends: at `?`, at the end, or where a complete check is required; 0 if
 * the target does not begin with such a path.
 */
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
  const spelt = spellCanonically(rawPath, pathDecides);
  if (typeof spelt !== "string") return spelt;
  for (const { allowance, isIn, message, ifPathDecides } of SUSPICIONS) {
    if (ifPathDecides && !pathDecides) continue;
    if (!allow.includes(allowance) && isIn(spelt)) return { refused: message };
  }
  return { path: spelt, query };
}

interface Suspicion {
  readonly allowance: PathAllowance;
  /** Returns whether the canonical path has this suspicious form. Takes time linear in the length of the path. */
  readonly isIn: (path: string) => boolean;
  readonly message: string;
  readonly ifPathDecides?: true;
}

/** Suspicious forms of paths, checked in this order. */
const SUSPICIONS: readonly Suspicion[] = [
  { allowance: "EncodedSlash", isIn: (path) => path.includes("%2F"), message: "the path has an encoded slash (%2F)" },
  { allowance: "Backslash", isIn: (path) => path.includes("%5C"), message: "the path has a backslash" },
  { allowance: "DoubleSlash", isIn: (path) => path.includes("//"), message: "the path has an empty segment (//)" },
  {
    // Servers that decode a path before they split it treat an encoded separator as a separator.
    allowance: "DotSegments",
    isIn: (path) => /(?:\/|%2F|%5C)\.{1,2}(?:$|[/;]|%2F|%5C|%3B)/.test(path),
    message: "the path has a dot segment",
  },
  {
    // Java servlets drop the text after a semicolon: they serve `/admin` for `/admin;x`, which a rule for `/admin` does not match.
    allowance: "Semicolon",
    isIn: (path) => path.includes(";"),
    message: "the path has a semicolon",
    ifPathDecides: true,
  },
  {
    // In Python, nginx and Java, `$` matches before a line terminator at the end, so a pattern for `/admin` also matches `/admin%0A`.
    allowance: "ControlCharacters",
    isIn: (path) => /%(?:[01]|7F|C2%[89]|E2%80%A[89])/.test(path),
    message: "the path has an encoded control character",
    ifPathDecides: true,
  },
  {
    // Some servers drop or replace invalid bytes before they route.
    allowance: "InvalidUtf8",
    isIn: (path) => decodePath(path) === undefined,
    message: "the path is not UTF-8 after decoding",
    ifPathDecides: true,
  },
];

/** Returns the percent-decoded path; `undefined` if an encoding is malformed or the bytes are not UTF-8. */
export function decodePath(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

/**
 * A server must also accept the absolute form (RFC 9112, section 3.2.2). The gate checks separately that the target's authority equals
 * Host.
 */
function reduceToOriginForm(target: string): string | { refused: string } {
  if (target.charCodeAt(0) === SLASH) return target;
  const [scheme] = SCHEME.exec(target) ?? [];
  if (scheme === undefined) return { refused: "the request target is not a path" };
  const authority = authorityAfter(scheme, target);
  // User information is an error in an absolute-form target (RFC 9110, 4.2.4).
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

/** Returns the authority of a target in absolute-form, valid or not; `undefined` for other forms. */
export function authorityOf(target: string): string | undefined {
  const [scheme] = SCHEME.exec(target) ?? [];
  return scheme === undefined ? undefined : authorityAfter(scheme, target);
}

/**
 * Host with an optional port (RFC 3986, sections 3.2.2 and 3.2.3): a name, which may be empty, or an address. Percent-encoded names are
 * rejected: `ex%61mple.com` is equivalent to `example.com` (RFC 3986, 6.2.2.2), but only some apps decode it.
 */
export const HOST = /^(?:\[[\w.:%~-]+\]|[\w.~!$&'()*+,;=-]*)(?::\d*)?$/;

/** Returns whether the text is a valid value of Host. */
export const isHost = (text: string): boolean => HOST.test(text);

/** Returns the canonical spelling of a path. `rawPath` has one byte per character, as HTTP parsers return it. */
function spellCanonically(rawPath: string, pathDecides: boolean): string | { refused: string } {
  const decoded = pathDecides ? IS_PCHAR : IS_UNRESERVED;
  let spelt = "";
  for (let at = 0; at < rawPath.length; at++) {
    const byte = rawPath.charCodeAt(at);
    if (byte <= 0x20 || byte === 0x7f || byte === HASH || byte > 0xff) {
      return { refused: "the path has a character that no path may have" };
    }
    if (byte === PERCENT) {
      const hex = rawPath.slice(at + 1, at + 3);
      if (!/^[0-9A-Fa-f]{2}$/.test(hex)) return { refused: "the path has a malformed percent-encoding" };
      const encoded = Number.parseInt(hex, 16);
      if (encoded === 0) return { refused: "the path has an encoded zero byte (%00)" };
      spelt += decoded[encoded] === 1 ? String.fromCharCode(encoded) : encodeByte(encoded);
      at += 2;
    } else {
      spelt += byte === SLASH || IS_PCHAR[byte] === 1 ? rawPath.charAt(at) : encodeByte(byte);
    }
  }
  return spelt;
}

const HASH = 0x23;
const encodeByte = (byte: number): string => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;

/** Encodes characters beyond ASCII as UTF-8, as in requests, because manifests are Unicode text. */
const encodeNonAscii = (path: string): string => path.toWellFormed().replace(/[^\0-\x7f]+/g, encodeURIComponent);
