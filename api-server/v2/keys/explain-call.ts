import { PublicError } from "../../../core/errors.ts";
import { explainAttempts } from "../../../core/explanation/explain-attempts.ts";
import { explainRule, withLimitSteps } from "../../../core/explanation/explain-rule.ts";
import type { Step } from "../../../core/explanation/shapes.ts";
import { attemptCounters } from "../../../core/policies/failed-attempts.ts";
import type { CompiledRule } from "../../../core/policies/match-rule.ts";
import { planRule } from "../../../core/policies/plan-rule.ts";
import type { CompiledPolicy } from "../../../core/policies/policy.ts";
import { readStoredPolicy } from "../../../core/policies/stored-policy.ts";
import { retryAtMs, secondsUntil } from "../../../core/ratelimits/limit-headers.ts";
import type { KeyRecord } from "../../../core/records.ts";
import { STATUS_AT_A_GATE } from "../../../core/verification/codes.ts";
import { networkOf } from "../../../core/verification/ip-address.ts";
import type { KeyView } from "../../../core/verification/key-view.ts";
import { CountersUnavailable } from "../../../edge/counters/contract.ts";
import type { Lookup, MaybePromise } from "../../../edge/projection/contract.ts";
import { type ExplainDeps, type Explained, explain, explainWithoutKey } from "../../../edge/verification/explain.ts";
import { type RuleRequest, RuleVerification } from "../../../edge/verification/rule-verification.ts";
import type { Verification } from "../../../edge/verification/verify.ts";
import { findKey, type KeyRow } from "../../db/keys.ts";
import { findPolicy, type PolicyRow } from "../../db/policies.ts";
import type { Deps } from "../../deps.ts";
import { seeRecord } from "../../domain/explain/stores.ts";
import { toCreditsState } from "../../domain/keys/credits.ts";
import { toJsonMs } from "../../domain/policies/pod-state.ts";
import { invalidField, policyNotFound } from "../../domain/refusals/refusals.ts";
import { describePolicy } from "../policies/schemas.ts";
import type { Asked, ExplainedOut } from "./explain-schemas.ts";
import { CallVerification } from "./key-verification.ts";

/* The part of keys.explainVerification and admin.explainVerification that follows once the key's workspace is known. */

export interface ExplainedCall {
  readonly deps: Deps;
  readonly workspaceId: string;
  /** SHA-256 of the key, in base64. */
  readonly hash: string;
  readonly asked: Asked;
  /** Policy of the gate that would receive the request; `undefined` to explain a call of keys.verifyKey. */
  readonly gate: PolicyRow | undefined;
  /**
   * Returns whether the caller is allowed to know that keys of an API exist; "all" if it is allowed to know this of every key of the
   * workspace.
   */
  readonly mayVerify: ((apiId: string) => boolean) | "all";
  /** Client address of the explained call of keys.verifyKey. */
  readonly clientIp: string | undefined;
}

/** Error kinds that both explain procedures return in addition to the common ones. */
export const EXPLAIN_ERRORS = [
  "permissions_query_syntax_error",
  "precondition_failed",
  "policy_not_found",
  "key_not_found",
] as const;

/**
 * Returns the policy that the body specifies; `undefined` if it specifies none. Throws PublicError 404 for an unknown policy, and 400 if
 * the body also has members that the policy's rules determine.
 */
export async function findGate(deps: Deps, workspaceId: string, asked: Asked): Promise<PolicyRow | undefined> {
  const { policyId } = asked;
  if (policyId === undefined) return undefined;
  const said = (["permissions", "credits", "ratelimits"] as const).find((name) => asked[name] !== undefined);
  if (said !== undefined)
    throw invalidField(`body.${said}`, "must be omitted with policyId, because the rules of the policy determine it");
  const row = await findPolicy(deps.db, { workspaceId, policyId });
  if (row === undefined) throw policyNotFound(policyId);
  return row;
}

/** Explains the decision of a verification without charging. Throws the same errors as keys.verifyKey for the body. */
export async function explainCall(call: ExplainedCall): Promise<ExplainedOut> {
  const { deps, workspaceId, hash, gate } = call;
  // Reads the policy first, because a policy that a later release has written is an error.
  const policy = gate === undefined ? undefined : readPolicy(gate);
  const stalenessMs = deps.projection.stalenessMs(workspaceId);
  const stores = {
    ...(await seeRecord(deps, { workspaceId, hash })),
    stalenessMs: Number.isFinite(stalenessMs) ? Math.ceil(stalenessMs) : -1,
  };
  const sayNotFound = (hidden: KeyRecord | undefined): string => notFound(call, stores, hidden);
  if (gate !== undefined && policy !== undefined) {
    return { stores, ...(await explainAtGate(call, { gate, policy, sayNotFound })) };
  }
  const explained = await explain(partsOf(call), new ExplainedCallVerification(call), { sayNotFound });
  return { stores, ...(await toOut(call, explained)), allowed: explained.code === "VALID" };
}

interface AtGate {
  readonly gate: PolicyRow;
  readonly policy: CompiledPolicy;
  readonly sayNotFound: (hidden: KeyRecord | undefined) => string;
}

async function explainAtGate(
  call: ExplainedCall,
  { gate, policy, sayNotFound }: AtGate,
): Promise<Omit<ExplainedOut, "stores">> {
  const { deps, workspaceId, asked } = call;
  const source = { id: gate.id, name: gate.name, ageMs: 0 };
  const { method, path, host, headers = [] } = asked;
  const rawHeaders = headers.flatMap(({ name, value }) => [name, value]);
  const gates = await describeGates(deps, workspaceId, gate);
  const request = { method, path, host, rawHeaders };
  const found = explainRule(policy, { ...request, source, gatesAgeMs: oldestOf(gates) });
  const { rule, index, name, code, steps, values } = found;
  const base = {
    mode: policy.mode,
    ...(index === undefined ? {} : { rule: index }),
    ...(name === undefined ? {} : { ruleName: name }),
    ...gates,
  };
  const passesAll = policy.mode === "Audit";
  if (rule === undefined) {
    const allowed = passesAll || code === "ANONYMOUS";
    const status = allowed ? 200 : code === "DENIED" ? 403 : 400;
    const ended = { code: code ?? "MALFORMED", allowed, status, steps, now: deps.nowMs() };
    return { ...NOTHING, ...base, ...ended };
  }
  const sent = { rule, ...values };
  if (rule.access === "Anonymous") {
    const { explained, ...counted } = await explainWithoutKey(partsOf(call), {
      plan: planRule(undefined, rule, {
        workspaceId,
        request: { ...values, address: addressOf(call, policy, rule) },
        audit: passesAll,
      }),
      withoutStore: policy,
      policy: source,
    });
    const allowed = passesAll || counted.code === "ANONYMOUS";
    return {
      ...base,
      ...explained,
      steps: withLimitSteps(steps, explained.steps),
      code: counted.code,
      allowed,
      status: allowed ? 200 : counted.code === "UNKNOWN" ? 503 : 429,
      ...(counted.retryAfterS === undefined ? {} : { retryAfter: counted.retryAfterS }),
      now: counted.nowMs,
    };
  }
  const attempts = await findAttempts(call, { gate, policy });
  const [before, ...after] = splitAtRule(steps);
  if (attempts?.step.decisive === true && !passesAll) {
    const { retryAfter } = attempts;
    const ended = { code: "TOO_MANY_ATTEMPTS", allowed: false, status: 429, now: deps.nowMs(), retryAfter } as const;
    return { ...NOTHING, ...base, ...ended, steps: [...before, attempts.step] };
  }
  const explained = await explain(partsOf(call), atGate(call, policy, sent), {
    policy: source,
    sayNotFound,
  });
  const out = await toOut(call, explained);
  const allowed = passesAll || out.code === "VALID";
  const attemptSteps = attempts === undefined ? [] : [{ ...attempts.step, decisive: false }];
  return {
    ...out,
    ...base,
    allowed,
    status: allowed ? 200 : out.status,
    steps: [...before, ...attemptSteps, ...after, ...out.steps],
  };
}

/** Returns the steps up to the matching of a rule, and separately the steps after it: a gate checks failed attempts in between. */
function splitAtRule(steps: readonly Step[]): [Step[], ...Step[]] {
  const end = steps.findIndex(({ step }) => step === "rule") + 1;
  return [steps.slice(0, end), ...steps.slice(end)];
}

/** Reads the failed attempts of the client address; `undefined` if the policy does not limit them or the address is unknown. */
async function findAttempts(
  { deps, workspaceId, hash, asked: { clientIp } }: ExplainedCall,
  { gate, policy }: { readonly gate: PolicyRow; readonly policy: CompiledPolicy },
): Promise<{ readonly step: Step; readonly retryAfter: number } | undefined> {
  const { failedAttempts: limit, clientAddress } = policy;
  if (limit === undefined || clientIp === undefined) return undefined;
  const address = networkOf(clientIp, clientAddress?.ipv6PrefixBits);
  const { failure, success } = attemptCounters({ workspaceId, policyId: gate.id, limit, address, hash });
  const charges = [failure, success].map((charge) => ({ ...charge, accuracy: "strict" as const }));
  try {
    const { limits, nowMs } = await deps.peekLimits(charges);
    const [failed, succeeded] = limits;
    const step = explainAttempts(failure, [failed, succeeded]);
    return { step, retryAfter: secondsUntil(failed === undefined ? nowMs : retryAtMs(failed), nowMs) };
  } catch (error) {
    if (!(error instanceof CountersUnavailable)) throw error;
    return { step: explainAttempts(failure, undefined), retryAfter: 1 };
  }
}

/** Summarizes the reports from the policy's sidecars. The summary omits the names of the sidecars. */
async function describeGates(
  deps: Deps,
  workspaceId: string,
  gate: PolicyRow,
): Promise<Pick<ExplainedOut, "dataPlane">> {
  const { dataPlane } = await describePolicy(deps, workspaceId, gate);
  if (dataPlane === undefined) return {};
  const { podIds: _, ...shown } = dataPlane;
  return { dataPlane: shown };
}

/** Returns the age of the data at the gate that is furthest behind, ms; `undefined` if no gate reports. */
function oldestOf({ dataPlane }: Pick<ExplainedOut, "dataPlane">): number | undefined {
  if (dataPlane === undefined || dataPlane.pods === 0) return undefined;
  return dataPlane.maxStalenessMs >= toJsonMs(Number.POSITIVE_INFINITY)
    ? Number.POSITIVE_INFINITY
    : dataPlane.maxStalenessMs;
}

const NOTHING = { permissions: { needed: [], held: [], heldCount: 0 }, limits: [] };

const partsOf = ({ deps, workspaceId }: ExplainedCall): ExplainDeps => ({
  nowMs: deps.nowMs,
  projection: deps.projection,
  recordsAgeMs: () => deps.projection.stalenessMs(workspaceId),
  peekLimits: deps.peekLimits,
  // Uses only the Redis counter, because gates do not spend credits from Postgres.
  readCredits: deps.credits.readSharedRemaining.bind(deps.credits),
});

class ExplainedCallVerification extends CallVerification {
  readonly #call: ExplainedCall;

  constructor(call: ExplainedCall) {
    super(call.asked, call, call.clientIp);
    this.#call = call;
  }

  find(): MaybePromise<Lookup<KeyView>> {
    return this.#call.deps.projection.findKey(this.workspaceId, this.#call.hash);
  }

  protected mayVerify(apiId: string): boolean {
    return maySee(this.#call, apiId);
  }
}

/** Verifies as a gate does. The caller's access to the API has already been checked, and the gate's cached data is assumed to be fresh. */
function atGate(
  call: ExplainedCall,
  policy: CompiledPolicy,
  request: Pick<RuleRequest, "rule" | "method" | "path" | "head">,
): Verification {
  const { deps, workspaceId, hash, asked } = call;
  const projection = { findKey: deps.projection.findKey.bind(deps.projection), stalenessMs: () => 0 };
  const clientIp = policy.clientAddress === undefined ? undefined : asked.clientIp;
  const address = addressOf(call, policy, request.rule);
  return new RuleVerification({ projection, workspaceId }, { active: { policy }, ...request, address, hash, clientIp });
}

/**
 * Returns the client address in the form in which limits count it. Throws PublicError 400 if a limit of the rule requires an address and
 * the body has none.
 */
function addressOf(
  { asked: { clientIp } }: ExplainedCall,
  { clientAddress }: CompiledPolicy,
  rule: CompiledRule,
): string {
  if (clientIp === undefined && rule.ratelimits.some(({ by }) => by.some(({ kind }) => kind === "address"))) {
    throw invalidField("body.clientIp", "is required, because a limit of the rule counts by address");
  }
  return networkOf(clientIp ?? "", clientAddress?.ipv6PrefixBits);
}

/** Parses a stored policy. Throws PublicError 412 if a later release has written it. */
function readPolicy(row: PolicyRow): CompiledPolicy {
  const { policy, problem } = readStoredPolicy(row.policy);
  if (policy !== undefined) return policy;
  throw new PublicError("precondition_failed", `This release cannot read the policy: ${problem}.`);
}

const maySee = ({ mayVerify }: ExplainedCall, apiId: string): boolean => mayVerify === "all" || mayVerify(apiId);

function notFound(
  call: ExplainedCall,
  { postgres, gates }: ExplainedOut["stores"],
  hidden: KeyRecord | undefined,
): string {
  if (hidden !== undefined && call.gate !== undefined && maySee(call, hidden.apiId)) {
    return "The key exists, but belongs to a different API than the policy, so the policy's gate cannot find it.";
  }
  if (call.mayVerify !== "all")
    return "The key does not exist, or the root key is not allowed to verify keys of its API.";
  if (postgres.state === "gone" && gates.state === "found") {
    return "Postgres no longer has this key. Gates still have it cached, and drop it within 30 s.";
  }
  return "No key of this workspace has this hash. Either the key was deleted, or it never existed in this workspace.";
}

const refillOf = ({ remaining, refill_amount: refillAmount, refill_day: refillDay }: KeyRow) =>
  toCreditsState({ remaining: remaining ?? 0, refillAmount, refillDay }).refill;

async function toOut(
  { deps, workspaceId }: ExplainedCall,
  { code, view, explained, retryAfterS, nowMs }: Explained,
): Promise<Omit<ExplainedOut, "stores" | "allowed">> {
  const { credits, ...rest } = explained;
  const base = {
    ...rest,
    code,
    status: code === "UNKNOWN" ? 503 : STATUS_AT_A_GATE[code],
    ...(retryAfterS === undefined ? {} : { retryAfter: retryAfterS }),
    now: nowMs,
  };
  if (view === undefined) return base;
  const { keyId, apiId, name } = view.key;
  const row = credits === undefined ? undefined : await findKey(deps.db, { workspaceId, keyId });
  const refill = row === undefined ? undefined : refillOf(row);
  return {
    ...base,
    keyId,
    apiId,
    ...(name === undefined ? {} : { keyName: name }),
    ...(view.identity === undefined ? {} : { externalId: view.identity.externalId }),
    ...(credits === undefined ? {} : { credits: { ...credits, ...(refill === undefined ? {} : { refill }) } }),
  };
}
