import { expect, test } from "vitest";
import { type DecisionDeps, decide } from "./decide.ts";

/* Tests the handling of internal errors; `exchange.test.ts` tests the decisions through the gate. */

function partsThat(policy: DecisionDeps["policy"]) {
  const observed: string[] = [];
  const faults: Array<{ error: unknown; requestId: string | undefined }> = [];
  const deps = {
    policy,
    nextId: () => "0000000000000001",
    metrics: { observe: (decision: string) => void observed.push(decision), auditedRefusals: 0 },
    onInternalError: (error: unknown, requestId?: string) => void faults.push({ error, requestId }),
  } as unknown as DecisionDeps;
  return { parts: deps, observed, faults };
}

const request = {
  method: "GET",
  url: "/",
  httpVersion: "1.1",
  rawHeaders: ["Host", "app"],
  socket: { remoteAddress: "192.0.2.1" },
};

test("gate rejects a request after an internal error, logs its id and counts it", () => {
  const fault = new Error("broken");
  const {
    parts: deps,
    observed,
    faults,
  } = partsThat(() => {
    throw fault;
  });
  expect(decide(deps, request, "request", performance.now())).toMatchObject({
    kind: "refuse",
    requestId: "req_0000000000000001",
    refusal: { decision: "UNAVAILABLE", problem: { kind: "unexpected_error" } },
  });
  expect(faults).toEqual([{ error: fault, requestId: "req_0000000000000001" }]);
  expect(observed).toEqual(["UNAVAILABLE"]);
});

test("gate rejects requests with 503 immediately while it has no policy", () => {
  const { parts: deps, observed, faults } = partsThat(() => undefined);
  expect(decide(deps, request, "request", performance.now())).toMatchObject({
    kind: "refuse",
    refusal: { problem: { kind: "verification_unavailable", retryAfterS: 1 } },
  });
  expect(observed).toEqual(["UNAVAILABLE"]);
  expect(faults).toEqual([]);
});
