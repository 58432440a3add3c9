import type { HeaderPair } from "../../core/policies/rule-headers.ts";
import type { ActivePolicy } from "../../sidecar/policy/active-policy.ts";
import { findRequestLine } from "../request-line.ts";
import type { Case, CaseStep } from "./cases.ts";
import { type DecidedKey, findPolicy, type World } from "./environment.ts";
import { type Decided, type Expected, type GateRequest, OfflineGate } from "./gate.ts";

/* Runs requests and cases against an environment. */

/** A request, as a case or the options define it. */
export interface RequestedRequest {
  readonly request: string;
  readonly policy?: string | undefined;
  readonly key?: string | false | undefined;
  readonly host?: string | undefined;
  readonly headers?: readonly HeaderPair[] | undefined;
  readonly clientAddress?: string | undefined;
}

export interface ResolvedRequest {
  readonly active: ActivePolicy;
  readonly key: DecidedKey | undefined;
  readonly sent: GateRequest;
}

/** Problem of a request, with the name of its field. */
export interface Unresolved {
  readonly field: "request" | "policy" | "key";
  readonly message: string;
}

/** Host of requests without a host. */
export const DEFAULT_HOST = "app";
const CLIENT_ADDRESS = "127.0.0.1";

/** Resolves the names in a request, and adds the key at the first location that the policy reads. */
export function resolve(world: World, asked: RequestedRequest): ResolvedRequest | Unresolved {
  const line = findRequestLine(asked.request);
  if (line === undefined) return { field: "request", message: `${asked.request} is not a method and a path` };
  const active = findPolicy(world.policies, asked.policy);
  if (typeof active === "string") return { field: "policy", message: active };
  const key = findKey(world, asked.key);
  if (typeof key === "string") return { field: "key", message: key };
  const { policy } = active;
  const { host = DEFAULT_HOST, headers = [] } = asked;
  const hasHost = headers.some(([name]) => name.toLowerCase() === "host");
  const rawHeaders = [...(hasHost ? [] : ["Host", host]), ...headers.flat()];
  let { path } = line;
  const [place] = policy.credentials;
  if (key !== undefined && place?.in === "header") {
    rawHeaders.push(place.name, place.scheme === undefined ? key.secret : `${place.scheme} ${key.secret}`);
  }
  if (key !== undefined && place?.in === "query") {
    path += `${path.includes("?") ? "&" : "?"}${encodeURIComponent(place.name)}=${key.secret}`;
  }
  const { clientAddress = CLIENT_ADDRESS } = asked;
  return { active, key, sent: { method: line.method, path, rawHeaders, clientAddress } };
}

function findKey({ keys }: World, name: string | false | undefined): DecidedKey | undefined | string {
  if (name === false) return undefined;
  if (name === undefined) {
    if (keys.length > 1)
      return `several keys match; choose one of ${keys.map((key) => key.name).join(", ")}, or send no key`;
    return keys[0];
  }
  return (
    keys.find((key) => key.name === name) ??
    `there is no key ${name}; defined keys: ${keys.map((key) => key.name).join(", ") || "none"}`
  );
}

export interface Decision extends Decided {
  /** Number of requests that were allowed. */
  readonly passed: number;
  /** Result that the explanation predicts for the last request. It is computed before that request is charged. */
  readonly expected: Expected;
}

/** Sends a request `times` times and explains the last one. Throws an internal error if the explanation and the decision differ. */
export async function send(
  gate: OfflineGate,
  { active, sent }: Pick<ResolvedRequest, "active" | "sent">,
  times: number,
): Promise<Decision> {
  let passed = 0;
  for (let i = 1; i < times; i++) if ((await gate.decide(active, sent)).allowed) passed += 1;
  const expected = await gate.foresee(active, sent);
  const decided = await gate.decide(active, sent);
  if (expected.code !== undefined && expected.code !== decided.code) {
    throw new Error(
      `internal error: the explanation has ${expected.code}, but the gate decided ${decided.code}; please report this`,
    );
  }
  return { ...decided, passed: passed + (decided.allowed ? 1 : 0), expected };
}

export interface StepResult {
  readonly step: CaseStep;
  readonly decision: Decision;
  /** Differences from the expected result, such as `code: expected VALID, got EXPIRED`. */
  readonly differences: readonly string[];
}

export interface CaseResult {
  readonly name: string;
  /** Results of the steps that ran. A case stops at the first difference. */
  readonly steps: readonly StepResult[];
}

/** Runs a case with empty counters. The names in its requests are already resolved. */
export async function runCase(
  world: World,
  { name, at, steps }: Case,
  { requests, nowMs }: { readonly requests: readonly ResolvedRequest[]; readonly nowMs: number },
): Promise<CaseResult> {
  const gate = await OfflineGate.open(world, at ?? nowMs);
  try {
    const results: StepResult[] = [];
    for (const [i, step] of steps.entries()) {
      const request = requests[i];
      if (request === undefined) throw new Error(`step ${i} of ${name} was not resolved`);
      await gate.advance(step.after ?? 0);
      const decision = await send(gate, request, step.times);
      const differences = compare(step, decision);
      results.push({ step, decision, differences });
      // Stops at the first difference, because later steps would only fail for the same reason.
      if (differences.length > 0) break;
    }
    return { name, steps: results };
  } finally {
    await gate.close();
  }
}

function compare({ expect }: CaseStep, { code, status, passed, expected }: Decision): string[] {
  const decisive = expected.steps.find((step) => step.decisive)?.step;
  const got = { code, status, passed, rule: expected.rule, ruleName: expected.ruleName, decisive };
  return Object.entries(expect).flatMap(([name, wanted]) => {
    const value = got[name as keyof typeof got];
    return value === wanted ? [] : [`${name}: expected ${wanted}, got ${value ?? "none"}`];
  });
}
