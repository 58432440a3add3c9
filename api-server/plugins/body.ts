import { isUtf8 } from "node:buffer";
import { type ErrorEntry, PublicError } from "../../core/errors.ts";
import { nameStep } from "./validation.ts";

/**
 * Maximum nesting depth. Deeper bodies are rejected, because components that process them later (a serializer, the database) are recursive.
 */
const DEPTH_MAX = 500;

/**
 * Maximum number of values in a body. Without it, a body of 10 MiB could take 1 GiB of memory, because most parsed values take 50 to 160
 * bytes.
 */
const VALUES_MAX = 250_000;

const MEDIA_TYPE = /^application\/json[ \t]*(?:;|$)/i;

/** Returns whether the content type is JSON; parameters are allowed. */
export const isJsonType = (contentType: string | undefined): boolean =>
  contentType === "application/json" || (contentType !== undefined && MEDIA_TYPE.test(contentType));

/** Throws PublicError `invalid_input` unless the content type is JSON. */
export function checkContentType(contentType: string | undefined): void {
  if (isJsonType(contentType)) return;
  throw refusal("The body must be JSON, with the content type application/json.", {
    location: "header.Content-Type",
    message: `expected application/json, got ${contentType === undefined ? "nothing" : "another type"}`,
  });
}

/** Throws PublicError `invalid_input` if the body is compressed, because the server does not decompress bodies. */
export function checkContentEncoding(contentEncoding: string | undefined): void {
  if (contentEncoding === undefined || contentEncoding.toLowerCase() === "identity") return;
  throw refusal("The body must not be compressed.", {
    location: "header.Content-Encoding",
    message: "expected no Content-Encoding, because the body must not be compressed",
  });
}

/** Up to this length, a text can neither be nested too deeply nor contain a number of more than 308 digits. */
const SHORT_LENGTH = 300;

/** Matches every number with a positive exponent, which might exceed the range of a double. */
const HAS_EXPONENT = /\d[eE][+\d]/;

/**
 * Parses the bytes of a body. Throws PublicError: `request_body_unreadable` if they are not UTF-8, `invalid_input` if they are not JSON,
 * have too many values, or contain a value that cannot be stored.
 */
export function parseBody(bytes: Buffer | undefined): unknown {
  if (bytes === undefined || bytes.length === 0) {
    throw refusal("The body is empty.", { location: "body", message: "expected JSON, got nothing" });
  }
  if (!isUtf8(bytes)) throw new PublicError("request_body_unreadable", "The body is not valid UTF-8.");
  if (hasMoreValues(bytes, VALUES_MAX)) throw tooManyValues(VALUES_MAX);
  const text = bytes.toString("utf8");
  const body = parseJson(text);
  // Skips the check for most bodies: in valid UTF-8, only escapes can produce U+0000 and lone surrogates.
  if (text.length > SHORT_LENGTH || text.includes("\\u") || HAS_EXPONENT.test(text)) checkStorable(body);
  return body;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/**
 * Returns whether a JSON text has more than `max` values. Each object, array, member and entry is a value; an empty object or array counts
 * as two. Scans the bytes without allocating memory. For invalid JSON, the result is meaningless.
 */
export function hasMoreValues(bytes: Buffer, max: number): boolean {
  // A text of at most `max` bytes cannot contain more values, because each value takes at least one byte.
  if (bytes.length <= max) return false;
  let values = 1;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === QUOTE) {
      for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++;
    } else if (byte === COMMA || byte === BRACKET || byte === BRACE) {
      values++;
      if (values > max) return true;
    }
  }
  return false;
}

export const tooManyValues = (max: number): PublicError =>
  refusal("The body has too many values.", {
    location: "body",
    message: `expected at most ${max.toLocaleString("en")} objects, arrays, members and entries in total`,
  });

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Does not use the parser's message, which would quote the body: the body may contain a secret.
    throw refusal("The body is not valid JSON.", { location: "body", message: "expected valid JSON" });
  }
}

/** The reason why a value cannot be stored, and the value's location, which is assembled while the recursion returns. */
interface Unstorable {
  readonly detail: string;
  readonly message: string;
  location: string;
}

/**
 * Throws PublicError `invalid_input` for values that cannot be stored: U+0000, lone surrogates, numbers beyond a double, deep nesting.
 * Allocates no memory per value, because the caller controls the number of values.
 */
export function checkStorable(body: unknown): void {
  const found = findUnstorable(body, 0);
  if (found === undefined) return;
  throw refusal(found.detail, { location: `body${found.location}`, message: found.message });
}

/** Returns the first value that cannot be stored. The function is recursive, up to `DEPTH_MAX` levels. */
function findUnstorable(value: unknown, depth: number): Unstorable | undefined {
  if (typeof value === "string") return isStorable(value) ? undefined : unstorable("text");
  if (typeof value === "number") {
    // The parser turns a number that is too large into infinity, which would be stored and returned as `null`.
    return Number.isFinite(value) ? undefined : { ...TOO_LARGE };
  }
  if (typeof value !== "object" || value === null) return undefined;
  if (depth === DEPTH_MAX) return { ...TOO_DEEP };
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const found = findUnstorable(value[i], depth + 1);
      if (found !== undefined) return at(String(i), found);
    }
    return undefined;
  }
  for (const name in value) {
    if (!isStorable(name)) return unstorable("member names");
    const found = findUnstorable((value as Record<string, unknown>)[name], depth + 1);
    if (found !== undefined) return at(name, found);
  }
  return undefined;
}

const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes("\0");

const unstorable = (what: string): Unstorable => ({
  detail: "The body contains text that cannot be stored.",
  message: `expected ${what} without U+0000 and without unpaired surrogates`,
  location: "",
});

const TOO_LARGE: Unstorable = {
  detail: "The body contains a number that cannot be stored.",
  message: "expected a number within the range of a double",
  location: "",
};

const TOO_DEEP: Unstorable = {
  detail: "The body is nested too deeply.",
  message: `expected at most ${DEPTH_MAX} levels of nesting`,
  location: "",
};

function at(step: string, found: Unstorable): Unstorable {
  found.location = nameStep(step) + found.location;
  return found;
}

const refusal = (detail: string, entry: ErrorEntry): PublicError =>
  new PublicError("invalid_input", detail, { errors: [entry] });
