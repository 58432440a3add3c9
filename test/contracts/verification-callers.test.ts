import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { hashKey } from "../../core/keys/key-string.ts";
import { parseQuery, type Query } from "../../core/permissions/query.ts";
import { PolicyInput } from "../../core/policies/policy.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import { type ChargePlan, planCall } from "../../core/verification/plan-charges.ts";
import { createMemoryEdge, type Edge } from "../../edge/open.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import { openProjection } from "../../edge/projection/projection.ts";
import type { WithoutStore } from "../../edge/verification/count.ts";
import { type Verification, type VerifyDeps, verify } from "../../edge/verification/verify.ts";
import { createCounting } from "../../sidecar/decision/counting.ts";
import { checkVerdict, evaluateHead } from "../../sidecar/decision/evaluate-head.ts";
import * as rules from "../../sidecar/decision/verify.ts";
import { type ActivePolicy, readPolicy } from "../../sidecar/policy/active-policy.ts";
import { aRatelimitRecord } from "../builders/key-view.ts";
import { aWorkspace } from "./edge/projected.ts";

/* Minimal future callers of a verification, which need only an adapter beside edge/verification. */

const KEY = "sk_3ZqYt9PwXk";
const PROJECTION_ID = "prj_1";

let ws: ReturnType<typeof aWorkspace>;
let edge: Edge;
let projection: Projection;
let parts: VerifyDeps;
beforeEach(async () => {
  ws = aWorkspace();
  edge = createMemoryEdge();
  projection = await openProjection({
    source: edge.source,
    stream: edge.stream,
    follow: { workspaceId: ws.workspaceId },
  });
  const counting = createCounting({
    projection,
    counters: edge.counters({ timeoutMs: 1000 }),
    nowMs: Date.now,
    podsAlive: () => 1,
    creditLoadMs: 100,
    onFailure: () => undefined,
  });
  parts = { ...counting, nowMs: Date.now };
  const key = {
    ...ws.key,
    ratelimits: [aRatelimitRecord("default", { limit: 2, durationMs: 86_400_000, autoApply: true })],
  };
  const writes = ws.writes.map((write) =>
    write.ref.kind === "key" ? { ref: ws.ref("key", hashKey(KEY)), data: key } : write,
  );
  await edge.writer.begin(PROJECTION_ID, [ws.workspaceId]);
  await edge.writer.write({ projectionId: PROJECTION_ID, version: 1, writes });
  await edge.writer.complete(PROJECTION_ID, [ws.workspaceId]);
  await edge.writer.heartbeat(PROJECTION_ID, Date.now(), [ws.workspaceId]);
});
afterEach(async () => {
  await projection.close();
  await edge.close();
});

/** A call without a root key whose permission query is parsed only for an otherwise valid key, as in v1. */
class CallWithoutRootKey implements Verification {
  readonly clientIp = "192.0.2.1";
  readonly #body: { readonly key: string; readonly query?: string };

  constructor(body: { readonly key: string; readonly query?: string }) {
    this.#body = body;
  }

  find() {
    return projection.findKey(ws.workspaceId, hashKey(this.#body.key));
  }

  maySee() {
    return true;
  }

  readQuery(): Query | undefined {
    return undefined;
  }

  plan(view: KeyView): ChargePlan {
    const { query } = this.#body;
    if (query !== undefined) parseQuery(query);
    const plan = planCall(view, { ratelimits: [], creditCost: 1 });
    if (!("limits" in plan)) throw new Error("nothing was named");
    return plan;
  }

  withoutStore(): WithoutStore {
    return { onCounterFailure: "Local", onCreditFailure: "Deny" };
  }
}

describe("an API without a root key", () => {
  test("API without root keys verifies and counts like the other APIs if it provides an adapter", async () => {
    const codes: unknown[] = [];
    for (let i = 0; i < 3; i++) codes.push(await verify(parts, new CallWithoutRootKey({ key: KEY })));
    expect(codes).toMatchObject([{ code: "VALID" }, { code: "VALID" }, { code: "RATE_LIMITED" }]);
    expect(await verify(parts, new CallWithoutRootKey({ key: "another" }))).toMatchObject({ code: "NOT_FOUND" });
  });

  test("verification adapter can check the key before the permission query", async () => {
    const call = new CallWithoutRootKey({ key: KEY, query: "a AND" });
    await expect(Promise.resolve(verify(parts, call)).catch((error: Error) => error.name)).resolves.toBe(
      "QuerySyntaxError",
    );
    await edge.writer.write({
      projectionId: PROJECTION_ID,
      version: 2,
      writes: [{ ref: ws.ref("key", hashKey(KEY)), data: { ...ws.key, enabled: false } }],
    });
    await expect.poll(() => verify(parts, call)).toMatchObject({ code: "DISABLED" });
  });
});

describe("a gateway with HTTP external authorization", () => {
  /** The request head that an external authorization service receives from a gateway. */
  const request = (url: string, ...rawHeaders: string[]) => ({
    method: "GET",
    url,
    httpVersion: "1.1",
    rawHeaders: ["Host", "orders.test", ...rawHeaders],
    socket: { remoteAddress: "192.0.2.7" },
  });
  let active: ActivePolicy;
  beforeEach(() => {
    const policy = PolicyInput.parse({
      formatVersion: 1,
      apiId: ws.apiId,
      mode: "Enforce",
      credentials: [{ in: "header", name: "X-API-Key" }],
      rules: [{ access: "Anonymous", creditCost: 1, ratelimits: [], path: { prefix: "/healthz" } }],
      onStale: { afterMs: 30_000, action: "Serve", denyAfterMs: 900_000 },
      onCounterFailure: "Local",
      onCreditFailure: "Deny",
      allowPaths: [],
    });
    const read = readPolicy({
      policyId: "pol_4",
      name: "orders",
      apiId: ws.apiId,
      uid: "u_1",
      generation: 1,
      version: 1,
      policy,
    });
    if ("problem" in read) throw new Error(read.problem);
    active = read;
  });

  async function ask(...head: Parameters<typeof request>) {
    const decision = evaluateHead(request(...head), "request", active);
    if (decision.kind === "count") throw new Error("the policy has no anonymous rule with limits");
    if (decision.kind !== "verify") return decision;
    const gate = { ...parts, projection, workspaceId: ws.workspaceId, onStaleDecision: () => undefined };
    return checkVerdict(decision, await rules.verify(gate, decision));
  }

  test("HTTP external authorization reuses the gate decision without a gate server", async () => {
    expect(await ask("/healthz")).toMatchObject({ kind: "pass", decision: "ANONYMOUS" });
    expect(await ask("/orders")).toMatchObject({ kind: "refuse", decision: "MISSING_KEY" });
    expect(await ask("/orders/../healthz")).toMatchObject({ kind: "refuse" });
    const decisions = [];
    for (let i = 0; i < 3; i++) decisions.push((await ask("/orders", "X-API-Key", KEY)).decision);
    expect(decisions).toEqual(["VALID", "VALID", "RATE_LIMITED"]);
  });
});
