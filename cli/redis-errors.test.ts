import { expect, test } from "vitest";
import { logRedisErrors } from "./redis-errors.ts";

test("log distinguishes a rejected Redis user from a lost connection, and is throttled", () => {
  const lines: unknown[] = [];
  const note = logRedisErrors({ warn: (...said: unknown[]) => void lines.push(said) } as never);
  for (let i = 0; i < 1_000; i++) {
    note(new Error("WRONGPASS invalid username-password pair or user is disabled."));
    note(new Error("connect ECONNREFUSED 127.0.0.1:6379"));
  }
  expect(lines).toEqual([
    [
      { reason: "WRONGPASS invalid username-password pair or user is disabled.", times: 1 },
      "Redis rejected the user; check its name, password and ACL",
    ],
    [{ reason: "connect ECONNREFUSED 127.0.0.1:6379", times: 1 }, "no connection to Redis; retrying"],
  ]);
});
