import type { LimitCharge, LimitOutcome } from "../../../core/charges.ts";
import { PublicError } from "../../../core/errors.ts";
import { QuerySyntaxError } from "../../../core/permissions/query.ts";
import { readStoredPolicy } from "../../../core/policies/stored-policy.ts";
import { KEY_CHECKS } from "../../../core/verification/check-key.ts";
import type { Code } from "../../../core/verification/codes.ts";
import { STATUS_AT_A_GATE } from "../../../core/verification/gate-status.ts";
import type { KeyView } from "../../../core/verification/key-view.ts";
import type { ChargePlan } from "../../../core/verification/plan-charges.ts";
import { CountersUnavailable } from "../../../edge/counters/contract.ts";
import { type Counted, count } from "../../../edge/verification/count.ts";
import { verify } from "../../../edge/verification/verify.ts";
import { DryCounting } from "../../domain/explain/dry-counting.ts";
import {
  type Asked,
  ExplainedVerification,
  findRule,
  NoSuchLimit,
  slugsIn,
  sourceOf,
} from "../../domain/explain/explained.ts";
import { seeRecord } from "../../domain/explain/stores.ts";
import { WITH_CREDITS } from "../../domain/ratelimits/counting.ts";
import { policyNotFound } from "../../domain/refusals/not-found.ts";
import { onWorkspace } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { findKeyHash } from "../../store/keys.ts";
import { listPermissionsOfKey, listPermissionsOfRoles } from "../../store/permissions.ts";
import { findPolicy } from "../../store/policies.ts";
import { listRolesOfKey } from "../../store/roles.ts";
import { Body, Data, type Limit, type Step } from "./explain-schemas.ts";

const needed = { explain: onWorkspace("explain") };

export const explainVerification = defineProcedure({
  path: "admin.explainVerification",
  effect: "read",
  summary: "Explain what a verification would decide",
  description:
    "Goes through the steps of a verification with the same functions, as a dry run: nothing is counted, spent, stored or recorded. Without a policy it explains a call of `keys.verifyKey`, with one a request at its gate.",
  permissions: needed,
  errors: ["permissions_query_syntax_error", "precondition_failed", "policy_not_found", "key_not_found"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

const HELD_SHOWN_MAX = 200;

async function handle(call: Call<Body, typeof needed>): Promise<Data> {
  call.require(needed.explain);
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const hash = await readHash(call);
  const gate = body.policyId === undefined ? undefined : await findGate(call, body.policyId);
  const stores = await seeRecord(deps, { workspaceId, hash });
  const stalenessMs = deps.projection.stalenessMs(workspaceId);
  const base = {
    stores: { ...stores, stalenessMs: Number.isFinite(stalenessMs) ? Math.ceil(stalenessMs) : -1 },
    ...(gate === undefined ? {} : { mode: gate.policy.mode }),
    now: deps.nowMs(),
  };
  const none = { permissions: { needed: [], held: [], heldCount: 0 }, limits: [] };
  if (gate !== undefined && "refused" in gate.rule) {
    const step: Step = {
      step: "path",
      result: "refused",
      decides: true,
      detail: `The path is refused because ${gate.rule.refused}.`,
    };
    return { ...base, ...none, code: "MALFORMED", status: 400, steps: [step] };
  }
  if (gate !== undefined && "access" in gate.rule && gate.rule.access === "Anonymous") {
    const detail = `Rule ${gate.rule.index + 1} lets requests through without a key.`;
    return {
      ...base,
      ...none,
      code: "ANONYMOUS",
      status: 200,
      rule: gate.rule.index,
      steps: [{ step: "path", result: "passed", decides: true, detail }],
    };
  }
  const asked: Asked =
    gate === undefined || "refused" in gate.rule
      ? {
          kind: "call",
          permissions: body.permissions,
          ratelimits: (body.ratelimits ?? []).map(({ duration, ...limit }) => ({ ...limit, durationMs: duration })),
          creditCost: body.credits?.cost ?? 1,
        }
      : { kind: "gate", policy: gate.policy, rule: gate.rule };
  const verification = new ExplainedVerification(
    { workspaceId, hash, clientIp: body.clientIp },
    deps.projection,
    asked,
  );
  const counting = new DryCounting(deps);
  try {
    const verdict = await verify(counting, verification);
    const view = verification.found?.status === "found" ? verification.found.value : undefined;
    const visible = view !== undefined && verification.maySee(view.key) ? view : undefined;
    const code: Code | "UNKNOWN" = verdict.kind === "decided" ? verdict.code : "UNKNOWN";
    const explained = {
      ...base,
      code,
      status: code === "UNKNOWN" ? 503 : STATUS_AT_A_GATE[code],
      ...(asked.kind === "gate" ? { rule: asked.rule.index } : {}),
    };
    if (visible === undefined) {
      const detail = notFound(stores, view, verdict.kind === "unknown" ? verdict.reason : undefined);
      return { ...explained, ...none, steps: [{ step: "found", result: "refused", decides: true, detail }] };
    }
    return { ...explained, ...(await explainKey(call, { view: visible, verification, counting, code })) };
  } catch (error) {
    throw toPublic(error);
  }
}

async function readHash({ body, caller, deps }: Call<Body>): Promise<string> {
  const { keyId, keyHash } = body;
  if ((keyId === undefined) === (keyHash === undefined)) {
    throw new PublicError("invalid_input", "Either `keyId` or `keyHash` is needed.", {
      errors: [{ location: "body.keyId", message: "expected this or body.keyHash" }],
    });
  }
  if (keyHash !== undefined) return keyHash;
  const hash = await findKeyHash(deps.db, { workspaceId: caller.workspaceId, keyId: keyId ?? "" });
  if (hash === undefined) throw new PublicError("key_not_found", `There is no key ${keyId} in the workspace.`);
  return hash;
}

async function findGate({ body, caller, deps }: Call<Body>, policyId: string) {
  const row = await findPolicy(deps.db, { workspaceId: caller.workspaceId, policyId });
  if (row === undefined) throw policyNotFound(policyId);
  const { policy, problem } = readStoredPolicy(row.policy);
  if (policy === undefined)
    throw new PublicError("precondition_failed", `The policy cannot be read by this release: ${problem}.`);
  return { policy, rule: findRule(policy, body) };
}

function notFound(
  { postgres, gates }: { postgres: { state: string }; gates: { state: string } },
  view: KeyView | undefined,
  reason: string | undefined,
): string {
  if (reason !== undefined) return `It cannot be looked up now: ${reason}.`;
  if (view !== undefined)
    return "The key exists, but is of another API than the policy's, so its gate does not know it.";
  if (postgres.state === "gone" && gates.state === "found") {
    return "Postgres has no such key. Gates still know it, and learn within 30 s that it is gone.";
  }
  return "No key of this workspace has this hash. It was deleted, or was never one of ours.";
}

interface OfKey {
  readonly view: KeyView;
  readonly verification: ExplainedVerification;
  readonly counting: DryCounting;
  readonly code: Code | "UNKNOWN";
}

async function explainKey(call: Call<Body>, { view, verification, counting, code }: OfKey) {
  const { deps } = call;
  const query = verification.readQuery();
  const check = { view, nowMs: deps.nowMs(), clientIp: verification.clientIp, query };
  const steps: Step[] = [step("found", true, `The key ${view.key.keyId} was found.`)];
  let isRefused = false;
  const needs = slugsIn(query).map((slug) => ({ slug, isHeld: view.grants.satisfies(slug) }));
  for (const { name, refuses } of KEY_CHECKS) {
    // Of calls and gates alike the API is checked when the key is looked for.
    if (name === "ofApi") continue;
    const passed = refuses(check) === undefined;
    steps.push({
      ...step(name, passed, sayCheck(name, passed, { view, clientIp: check.clientIp, needs, nowMs: check.nowMs })),
      decides: !passed && !isRefused,
    });
    isRefused ||= !passed;
  }
  const plan = verification.plan(view);
  const counted = await peek(counting, plan);
  const limits =
    counted?.consumed === undefined
      ? []
      : counted.limits.map((charge, i) => toLimit(charge, counted.consumed?.limits[i], { view, plan }));
  const refusing = limits.filter(({ passed }) => !passed).map(({ name }) => name);
  const limitsPassed = refusing.length === 0;
  steps.push(
    counted === undefined
      ? { step: "limits", result: "skipped", decides: code === "UNKNOWN", detail: "The shared counters do not answer." }
      : {
          ...step("limits", limitsPassed, limitsPassed ? sayLimits(limits.length) : `Used up: ${refusing.join(", ")}.`),
          decides: !limitsPassed && !isRefused,
        },
  );
  isRefused ||= !limitsPassed;
  const credits = await readCredits(call, plan, view);
  const creditsPassed = credits?.passed ?? true;
  steps.push({
    ...step(
      "credits",
      creditsPassed,
      credits === undefined
        ? "The key has unlimited credits."
        : `${credits.remaining} credits are left, the request costs ${credits.cost}.`,
    ),
    decides: !creditsPassed && !isRefused,
  });
  const { apiId, keyId, name } = view.key;
  return {
    keyId,
    apiId,
    ...(name === undefined ? {} : { keyName: name }),
    ...(view.identity === undefined ? {} : { externalId: view.identity.externalId }),
    steps,
    permissions: { needed: needs, ...(await readHeld(call, keyId)) },
    limits,
    ...(credits === undefined ? {} : { credits }),
  };
}

const step = (name: Step["step"], passed: boolean, detail: string): Step => ({
  step: name,
  result: passed ? "passed" : "refused",
  decides: false,
  detail,
});

const sayLimits = (limits: number): string =>
  limits === 0 ? "No limit applies." : "Every limit would let it through.";

interface Said {
  readonly view: KeyView;
  readonly clientIp: string | undefined;
  readonly needs: readonly { readonly slug: string; readonly isHeld: boolean }[];
  readonly nowMs: number;
}

function sayCheck(name: (typeof KEY_CHECKS)[number]["name"], passed: boolean, { view, clientIp, needs }: Said): string {
  const { key, api } = view;
  switch (name) {
    case "api":
      return passed ? `Its API is ${api?.name ?? ""} (${key.apiId}).` : "Its API was deleted.";
    case "workspace":
      return passed ? "The workspace is enabled." : "The workspace is disabled.";
    case "enabled":
      return passed ? "The key is enabled." : "The key is disabled.";
    case "ofApi":
      return passed ? "The key is of this API." : "The key is of another API.";
    case "expiry": {
      if (key.expiresMs === undefined) return "The key never expires.";
      const at = new Date(key.expiresMs).toISOString();
      return passed ? `The key expires at ${at}.` : `The key expired at ${at}.`;
    }
    case "address":
      if (api?.ipAllowList === undefined) return "The API allows every address.";
      if (clientIp === undefined) return "The API has an allow-list; no client's address was given to check.";
      return passed
        ? `${clientIp} is on the allow-list of the API.`
        : `${clientIp} is not on the allow-list of the API.`;
    case "permissions": {
      if (needs.length === 0) return "No permission is needed.";
      const lacking = needs.filter(({ isHeld }) => !isHeld).map(({ slug }) => slug);
      if (passed) return "The key holds what is needed.";
      return `The key lacks ${lacking.join(", ")}.`;
    }
  }
}

/** undefined while the shared counters are away. */
async function peek(counting: DryCounting, plan: ChargePlan): Promise<Counted | undefined> {
  const counted = await count(counting, { plan: { ...plan, credits: undefined }, withoutStore: WITH_CREDITS });
  return counted.kind === "counted" ? counted : undefined;
}

function toLimit(
  charge: LimitCharge,
  outcome: LimitOutcome | undefined,
  of: { readonly view: KeyView; readonly plan: ChargePlan },
): Limit {
  const { scope, identifier, limit, durationMs, cost } = charge;
  const remaining = Math.max(0, outcome?.remaining ?? 0);
  const before = of.plan.shared.find((one) => one.scope.value === scope.value && one.identifier === identifier);
  return {
    name: scope.value,
    source: sourceOf(charge, of),
    identifier,
    limit,
    duration: durationMs,
    cost,
    used: Math.max(0, limit - remaining),
    remaining,
    passed: outcome?.passed ?? false,
    reset: outcome?.resetMs ?? 0,
    overridden: before !== undefined && (before.limit !== limit || before.durationMs !== durationMs),
  };
}

async function readCredits({ deps }: Call<Body>, { credits }: ChargePlan, { key }: KeyView) {
  if (credits === undefined) return undefined;
  const remaining = await deps.credits.readRemaining({ workspaceId: key.workspaceId, keyId: key.keyId });
  if (remaining === undefined) return undefined;
  return { remaining, cost: credits.cost, passed: credits.cost <= remaining };
}

async function readHeld({ deps, caller }: Call<Body>, keyId: string) {
  const { workspaceId } = caller;
  const [direct, roles] = await Promise.all([
    listPermissionsOfKey(deps.db, { workspaceId, keyId }),
    listRolesOfKey(deps.db, { workspaceId, keyId }),
  ]);
  const through = await listPermissionsOfRoles(deps.db, { workspaceId, roleIds: roles.map(({ id }) => id) });
  const held = new Map<string, { slug: string; isDirect: boolean; roles: string[] }>();
  for (const { slug } of direct) held.set(slug, { slug, isDirect: true, roles: [] });
  for (const { slug, role_id } of through) {
    const one = held.get(slug) ?? { slug, isDirect: false, roles: [] };
    one.roles.push(roles.find(({ id }) => id === role_id)?.name ?? role_id);
    held.set(slug, one);
  }
  const all = [...held.values()].sort((a, b) => (a.slug < b.slug ? -1 : 1));
  return { held: all.slice(0, HELD_SHOWN_MAX), heldCount: all.length };
}

function toPublic(error: unknown): unknown {
  if (error instanceof QuerySyntaxError) {
    const errors = [{ location: "body.permissions", message: error.message }];
    return new PublicError("permissions_query_syntax_error", error.message, { errors });
  }
  if (error instanceof NoSuchLimit) {
    return new PublicError("precondition_failed", `The rate limit ${error.limit} is not attached to the key.`, {
      cause: error,
    });
  }
  if (error instanceof CountersUnavailable) {
    return new PublicError("service_unavailable", "The shared counters do not answer.", { cause: error });
  }
  return error;
}
