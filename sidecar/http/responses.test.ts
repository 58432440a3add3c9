import { expect, test } from "vitest";
import { type Problem, problemResponse, rawProblem } from "./responses.ts";

const context = { requestId: "req_1", docsUrl: "https://docs.test", accept: undefined };
const respond = (problem: Problem, accept?: string) => {
  const { status, headers, body } = problemResponse(problem, { ...context, accept });
  const pairs = headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1]]] : []));
  return { status, headers: Object.fromEntries(pairs), body: JSON.parse(body) };
};

const unavailable: Problem = { kind: "verification_unavailable", detail: "Why.", retryAfterS: 1 };

test("gate error body has exactly the members of a v2 API error", () => {
  expect(respond(unavailable).body).toEqual({
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
] as const)("gate error body with status $status names the faulty location", ({ kind, status }) => {
  const { body } = respond({ kind, detail: "What.", location: "path" });
  expect(body.error).toMatchObject({ status, errors: [{ location: "path", message: "What." }] });
});

test.each([
  { accept: undefined, type: "application/json" },
  { accept: "*/*", type: "application/json" },
  { accept: "text/html, application/problem+json", type: "application/problem+json" },
  { accept: "application/*", type: "application/problem+json" },
])("gate error for `Accept: $accept` has content type $type", ({ accept, type }) => {
  expect(respond(unavailable, accept).headers["Content-Type"]).toBe(type);
});

test("gate error sends WWW-Authenticate and Retry-After headers where they apply", () => {
  const challenged = respond({ ...unavailable, authenticate: "Bearer", retryAfterS: 7 }).headers;
  expect(challenged).toMatchObject({ "WWW-Authenticate": "Bearer", "Retry-After": "7" });
  const { headers } = respond({ kind: "unauthorized", detail: "Why." });
  expect(Object.keys(headers)).toEqual(["Content-Type", "Content-Length", "X-Request-Id"]);
});

test("gate error serialized to bytes is a complete HTTP response with `Connection: close`", () => {
  const [head, body] = rawProblem({ kind: "malformed_request", detail: "Wörse." }, context).split("\r\n\r\n");
  expect(head).toMatch(/^HTTP\/1\.1 400 Bad Request\r\nConnection: close\r\n/);
  expect(head).toContain(`Content-Length: ${Buffer.byteLength(body ?? "")}`);
});
