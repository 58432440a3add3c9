import { describe, expect, test } from "vitest";
import { Code } from "../../core/verification/codes.ts";
import { type Problem, problemAnswer, rawProblem, refusalProblem, unavailableProblem } from "./answers.ts";

const context = { requestId: "req_1", docsUrl: "https://docs.test", accept: undefined };
const answer = (problem: Problem, accept?: string) => {
  const { status, headers, body } = problemAnswer(problem, { ...context, accept });
  const pairs = headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1]]] : []));
  return { status, headers: Object.fromEntries(pairs), body: JSON.parse(body) };
};

describe("a refusal's status follows from its code", () => {
  const STATUS = {
    NOT_FOUND: 401,
    DISABLED: 401,
    EXPIRED: 401,
    FORBIDDEN: 403,
    INSUFFICIENT_PERMISSIONS: 403,
    RATE_LIMITED: 429,
    USAGE_EXCEEDED: 429,
  } as const;
  const codes = Code.options.filter((code) => code !== "VALID");

  test.each(codes)("%s", (code) => {
    const { status, body, headers } = answer(refusalProblem(code, 7));
    expect(status).toBe(STATUS[code]);
    expect(body.error.status).toBe(status);
    expect(headers["Retry-After"]).toBe("7");
    expect("WWW-Authenticate" in headers).toBe(status === 401);
  });
});

test("the body has the members of the v2 API, and no others", () => {
  expect(answer(unavailableProblem("Why.")).body).toEqual({
    meta: { requestId: "req_1" },
    error: {
      title: "Service Unavailable",
      detail: "Why.",
      status: 503,
      type: "https://docs.test/errors/verification_unavailable",
    },
  });
});

test.each([
  { kind: "malformed_request", status: 400 },
  { kind: "request_timeout", status: 408 },
] as const)("status $status lists where the fault is", ({ kind, status }) => {
  const { body } = answer({ kind, detail: "What.", location: "path" });
  expect(body.error).toMatchObject({ status, errors: [{ location: "path", message: "What." }] });
});

test.each([
  { accept: undefined, type: "application/json" },
  { accept: "*/*", type: "application/json" },
  { accept: "text/html, application/problem+json", type: "application/problem+json" },
  { accept: "application/*", type: "application/problem+json" },
])("who accepts $accept gets $type", ({ accept, type }) => {
  expect(answer(unavailableProblem("Why."), accept).headers["Content-Type"]).toBe(type);
});

test("as bytes it is a whole HTTP answer that ends the connection", () => {
  const [head, body] = rawProblem({ kind: "malformed_request", detail: "Wörse." }, context).split("\r\n\r\n");
  expect(head).toMatch(/^HTTP\/1\.1 400 Bad Request\r\nConnection: close\r\n/);
  expect(head).toContain(`Content-Length: ${Buffer.byteLength(body ?? "")}`);
});
