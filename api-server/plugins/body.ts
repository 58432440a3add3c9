import { isUtf8 } from "node:buffer";
import { type ErrorEntry, PublicError } from "../../core/errors.ts";
import { nameStep } from "./validation.ts";

/** Deeper bodies are refused, because later readers (a serializer, the database) are recursive. */
const DEPTH_MAX = 500;

const MEDIA_TYPE = /^application\/json[ \t]*(?:;|$)/i;

/** Whether a body is announced as JSON; parameters are allowed. */
export const isJsonType = (contentType: string | undefined): boolean =>
  contentType === "application/json" || (contentType !== undefined && MEDIA_TYPE.test(contentType));

/** Throws PublicError `invalid_input` unless the body is announced as JSON. */
export function checkContentType(contentType: string | undefined): void {
  if (isJsonType(contentType)) return;
  throw refusal("The body must be JSON, announced as such.", {
    location: "header.Content-Type",
    message: `expected application/json, got ${contentType === undefined ? "nothing" : "another type"}`,
  });
}

/** Throws PublicError `invalid_input` when the body is announced as compressed, because it is never decompressed. */
export function checkContentEncoding(contentEncoding: string | undefined): void {
  if (contentEncoding === undefined || contentEncoding.toLowerCase() === "identity") return;
  throw refusal("The body must not be encoded.", {
    location: "header.Content-Encoding",
    message: "expected a body that is not compressed, and no such header",
  });
}

/**
 * A number that is too large for a double has an exponent, or more than 308 digits. Anything that looks like one is checked.
 */
const MAYBE_TOO_LARGE = /\d[eE]\+?\d|\d{300}/;

/**
 * Parses the bytes of a body. Throws PublicError: `request_body_unreadable` when they are not UTF-8, `invalid_input` when they
 * are not JSON or contain what cannot be stored.
 */
export function parseBody(bytes: Buffer | undefined): unknown {
  if (bytes === undefined || bytes.length === 0) {
    throw refusal("The body is empty.", { location: "body", message: "expected JSON, got nothing" });
  }
  if (!isUtf8(bytes)) throw new PublicError("request_body_unreadable", "The body is not valid UTF-8.");
  const text = bytes.toString("utf8");
  const body = parseJson(text);
  // In valid UTF-8, U+0000 and lone surrogates can only come from an escape; and a short text is not deep.
  if (text.length > DEPTH_MAX || text.includes("\\u") || MAYBE_TOO_LARGE.test(text)) checkStorable(body);
  return body;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the body, which may contain a secret.
    throw refusal("The body is not valid JSON.", { location: "body", message: "expected valid JSON" });
  }
}

/** A value that is still to be checked, linked to its parent: paths are built only for a fault. */
interface Place {
  readonly value: unknown;
  readonly step: string;
  readonly parent: Place | undefined;
  readonly depth: number;
}

/**
 * Throws PublicError `invalid_input` for what cannot be stored: U+0000, half surrogate pairs, numbers beyond a double, deep nesting.
 * Keeps its own stack, because the caller decides the nesting of a body.
 */
export function checkStorable(body: unknown): void {
  const places: Place[] = [{ value: body, step: "", parent: undefined, depth: 0 }];
  for (let place = places.pop(); place !== undefined; place = places.pop()) {
    const { value, depth } = place;
    if (typeof value === "string") {
      if (!isStorable(value)) throw unstorable(place, "text");
    } else if (typeof value === "number") {
      // The parser makes it infinite, which would be stored and returned as null.
      if (!Number.isFinite(value)) {
        throw refusal("The body holds a number that cannot be stored.", {
          location: locate(place),
          message: "expected a number within the range of a double",
        });
      }
    } else if (typeof value === "object" && value !== null) {
      if (depth === DEPTH_MAX) {
        throw refusal("The body is nested too deeply.", {
          location: locate(place),
          message: `expected at most ${DEPTH_MAX} levels of nesting`,
        });
      }
      for (const [name, member] of Object.entries(value)) {
        if (!isStorable(name)) throw unstorable(place, "member names");
        places.push({ value: member, step: name, parent: place, depth: depth + 1 });
      }
    }
  }
}

const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes("\0");

const unstorable = (place: Place, what: string): PublicError =>
  refusal("The body holds text that cannot be stored.", {
    location: locate(place),
    message: `expected ${what} without U+0000 and without half surrogate pairs`,
  });

function locate(place: Place): string {
  let location = "";
  for (let at = place; at.parent !== undefined; at = at.parent) location = nameStep(at.step) + location;
  return `body${location}`;
}

const refusal = (detail: string, entry: ErrorEntry): PublicError =>
  new PublicError("invalid_input", detail, { errors: [entry] });
