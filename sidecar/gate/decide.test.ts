import { expect, test } from "vitest";
import { type DecisionParts, decide } from "./decide.ts";

/* What the decisions are is tested through the gate, in exchange.test.ts; here, what happens to a fault of our own. */

function partsThat(policy: DecisionParts["policy"]) {
  const observed: string[] = [];
  const faults: Array<{ error: unknown; requestId: string | undefined }> = [];
  const parts = {
    policy,
    nextId: () => "0000000000000001",
    metrics: { observe: (decision: string) => void observed.push(decision), auditedRefusals: 0 },
    onFault: (error: unknown, requestId?: string) => void faults.push({ error, requestId }),
  } as unknown as DecisionParts;
  return { parts, observed, faults };
}

const request = {
  method: "GET",
  url: "/",
  httpVersion: "1.1",
  rawHeaders: ["Host", "app"],
  socket: { remoteAddress: "192.0.2.1" },
};

test("a fault is reported with the id of the request, refuses it, and is counted once", () => {
  const fault = new Error("broken");
  const { parts, observed, faults } = partsThat(() => {
    throw fault;
  });
  expect(decide(parts, request, "request", performance.now())).toMatchObject({
    kind: "refuse",
    requestId: "req_0000000000000001",
    refusal: { decision: "UNAVAILABLE", problem: { kind: "unexpected_error" } },
  });
  expect(faults).toEqual([{ error: fault, requestId: "req_0000000000000001" }]);
  expect(observed).toEqual(["UNAVAILABLE"]);
});

test("without a policy a request is refused for now, without waiting", () => {
  const { parts, observed, faults } = partsThat(() => undefined);
  expect(decide(parts, request, "request", performance.now())).toMatchObject({
    kind: "refuse",
    refusal: { problem: { kind: "verification_unavailable", retryAfterS: 1 } },
  });
  expect(observed).toEqual(["UNAVAILABLE"]);
  expect(faults).toEqual([]);
});
