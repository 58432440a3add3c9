import { expect, test } from "vitest";
import { readTokenCookie, SESSION_COOKIE } from "./cookies.ts";

const token = "t".repeat(43);

test.each([
  [`__Host-postern=${token}`, token],
  [`a=b;  __Host-postern=${token} ;c=d`, token],
  [`__Host-postern-sign-in=${"x".repeat(43)}; __Host-postern=${token}`, token],
  // The first one counts: a browser keeps one of this name, so a second one was put there by something else.
  [`__Host-postern=${token}; __Host-postern=${"u".repeat(43)}`, token],
  [`__Host-postern=short; __Host-postern=${token}`, undefined],
  [`__host-postern=${token}`, undefined],
  [`x__Host-postern=${token}`, undefined],
  [`__Host-postern=${token}x`, undefined],
  [`__Host-postern="${token}"`, undefined],
  ["__Host-postern", undefined],
  [";;;=;", undefined],
  ["", undefined],
  [undefined, undefined],
])("session cookie is parsed from %s", (header, value) => expect(readTokenCookie(header, SESSION_COOKIE)).toBe(value));
