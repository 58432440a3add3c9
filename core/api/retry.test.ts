import { expect, test } from "vitest";
import { mayRetry, NO_RESPONSE, readRetryAfterMs, retryAfter } from "./retry.ts";

test("Retry-After is whole seconds, rounded up, at least 1", () => {
  expect([0, 0.2, 1, 1.01, 60].map(retryAfter)).toEqual(["1", "1", "1", "2", "60"]);
});

test("Retry-After is converted to milliseconds, and ignored if it is not a number of seconds", () => {
  expect(["0", "30", "999999999"].map(readRetryAfterMs)).toEqual([0, 30_000, 999_999_999_000]);
  const ignored = [undefined, null, "", "-1", "1.5", "1e3", " 1", "Wed, 21 Oct 2026 07:28:00 GMT", "9999999999"];
  expect(ignored.map(readRetryAfterMs)).toEqual(ignored.map(() => undefined));
});

test.each([NO_RESPONSE, 500, 502, 503, 504])(
  "only calls that may be executed twice are retried after status %d",
  (status) => {
    expect(mayRetry(status, { isRepeatable: true })).toBe(true);
    expect(mayRetry(status, { isRepeatable: false })).toBe(false);
  },
);

test("any call is retried after 429, because the server rejects a call before executing it", () => {
  expect(mayRetry(429, { isRepeatable: false })).toBe(true);
});

test.each([200, 400, 401, 403, 404, 408, 409, 410, 412, 413])("no call is retried after status %d", (status) => {
  expect(mayRetry(status, { isRepeatable: true })).toBe(false);
});
