import { expect, test } from "vitest";
import { ERROR_KINDS } from "../../core/errors.ts";
import { Code, STATUS_AT_A_GATE } from "../../core/verification/codes.ts";
import { refusalProblem } from "./problems.ts";

const STATUS = {
  NOT_FOUND: 401,
  DISABLED: 401,
  EXPIRED: 401,
  FORBIDDEN: 403,
  INSUFFICIENT_PERMISSIONS: 403,
  RATE_LIMITED: 429,
  USAGE_EXCEEDED: 429,
} as const;

test.each(Code.options.filter((code) => code !== "VALID"))(
  "HTTP status of a decision follows from its verification code %s",
  (code) => {
    const { kind, authenticate, retryAfterS } = refusalProblem(code, 7);
    const { status } = ERROR_KINDS[kind];
    expect(status).toBe(STATUS[code]);
    expect(retryAfterS).toBe(7);
    expect(authenticate !== undefined).toBe(status === 401);
  },
);

test("statuses in an explanation match the statuses of gate responses", () => {
  for (const [code, status] of Object.entries(STATUS_AT_A_GATE)) {
    if (code === "VALID") continue;
    expect(ERROR_KINDS[refusalProblem(code as Exclude<Code, "VALID">, undefined).kind].status).toBe(status);
  }
});
