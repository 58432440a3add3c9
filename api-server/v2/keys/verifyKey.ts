import { performance } from "node:perf_hooks";
import type { LimitCharge, LimitOutcome } from "../../../core/charges.ts";
import { PublicError } from "../../../core/errors.ts";
import { hashKey } from "../../../core/keys/key-string.ts";
import { parseQuery, type Query, QuerySyntaxError } from "../../../core/permissions/query.ts";
import { checkKey } from "../../../core/verification/check-key.ts";
import type { Code } from "../../../core/verification/codes.ts";
import type { KeyView } from "../../../core/verification/key-view.ts";
import { type SelectedLimit, selectLimits } from "../../../core/verification/select-limits.ts";
import { settle } from "../../../core/verification/settle.ts";
import { subjectJson, verificationLine } from "../../../edge/events/verification-line.ts";
import { consumeForKey } from "../../domain/consume-for-key.ts";
import { consumeLimits } from "../../domain/consume-limits.ts";
import { invalidField } from "../../domain/invalid-field.ts";
import { takeOverMigratedKey } from "../../domain/migrated-keys.ts";
import { onApi } from "../../needed-permissions.ts";
import { type Call, type DataJson, defineProcedure } from "../../procedure.ts";
import { isDatabaseUnavailable } from "../../store/failures.ts";
import { NOT_FOUND, toDataJson } from "./verify-reply.ts";
import { Body, Data } from "./verify-schemas.ts";

/*
 * The way of a key that is cached, has no limits and no credits is synchronous from here to the answer: this is the call
 * that every request of a customer's backend may make.
 */

const needed = { verifyKey: onApi("verify_key") };

export const verifyKey = defineProcedure({
  path: "keys.verifyKey",
  effect: "read",
  summary: "Decide whether a key may be used",
  description:
    "Always answers 200 with a code: a key that may not be used is an outcome and not an error. Charges rate limits (all or none of them) and, last, credits.",
  permissions: needed,
  errors: ["permissions_query_syntax_error", "precondition_failed"],
  body: Body,
  data: Data,
  handle,
});

function handle(call: Call<Body, typeof needed>): DataJson | Promise<DataJson> {
  const { body, caller, deps } = call;
  const startedMs = performance.now();
  // Before the lookup, so that the refusal tells nothing about the key.
  if (!call.holdsForSome(needed.verifyKey)) call.require(needed.verifyKey);
  const hash = hashKey(body.key);
  const view = deps.projection.peekKey(caller.workspaceId, hash);
  return view === undefined ? findAndVerify(call, hash, startedMs) : verify(call, view, startedMs);
}

async function findAndVerify(call: Call<Body, typeof needed>, hash: string, startedMs: number): Promise<DataJson> {
  const view = (await findKey(call, hash)) ?? (await findMigratedKey(call, hash));
  return view === undefined ? NOT_FOUND : verify(call, view, startedMs);
}

/** Throws PublicError 500 when nothing is known. */
async function findKey({ caller, deps }: Call<Body>, hash: string): Promise<KeyView | undefined> {
  const found = await deps.projection.findKey(caller.workspaceId, hash);
  if (found.status === "unusable") {
    throw new PublicError("service_unavailable", "The key cannot be looked up now.", {
      cause: new Error(found.reason),
    });
  }
  return found.status === "absent" ? undefined : found.value;
}

/** A key that a migration brought is stored as one of ours when it is first presented (api-v2.md section 12.4). */
async function findMigratedKey(call: Call<Body, typeof needed>, hash: string): Promise<KeyView | undefined> {
  const { body, caller, deps } = call;
  const { key, migrationId } = body;
  if (migrationId === undefined) return undefined;
  const { workspaceId } = caller;
  const isTakenOver = await takeOverMigratedKey(deps, {
    workspaceId,
    migrationId,
    key,
    hash,
    mayVerify: (apiId) => call.holds(needed.verifyKey, apiId),
  });
  return isTakenOver ? findKey(call, hash) : undefined;
}

/** Steps 4 to 14 of api-v2.md section 12. */
function verify(call: Call<Body, typeof needed>, view: KeyView, startedMs: number): DataJson | Promise<DataJson> {
  const { body, caller, deps, origin } = call;
  const { key } = view;
  if (view.api === undefined || key.workspaceId !== caller.workspaceId || !call.holds(needed.verifyKey, key.apiId)) {
    return NOT_FOUND;
  }
  const query = body.permissions === undefined ? undefined : readQuery(body.permissions);
  const refusal = checkKey({ view, nowMs: deps.nowMs(), clientIp: origin.clientIp, query });
  if (refusal !== undefined) {
    return key.limited
      ? finishUncounted(call, view, refusal, startedMs)
      : finish(call, view, { code: refusal, startedMs });
  }
  const charges = chooseCharges(view, body);
  return charges.limits.length === 0 && !key.limited
    ? finish(call, view, { code: "VALID", startedMs })
    : countAndFinish(call, view, charges, startedMs);
}

function readQuery(text: string): Query {
  try {
    return parseQuery(text);
  } catch (error) {
    if (!(error instanceof QuerySyntaxError)) throw error;
    throw new PublicError("permissions_query_syntax_error", error.message, {
      errors: [{ location: "body.permissions", message: error.message }],
    });
  }
}

/** What a verification is charged with: the same places of both belong together. */
interface Charges {
  readonly limits: readonly SelectedLimit[];
  readonly asked: readonly LimitCharge[];
}

/** By key view: what applies by itself, for the many calls that name no limit. */
const ownCharges = new WeakMap<KeyView, Charges>();

function chooseCharges(view: KeyView, { ratelimits }: Body): Charges {
  if (ratelimits !== undefined && ratelimits.length > 0) return toCharges(view, chooseLimits(view, ratelimits));
  let charges = ownCharges.get(view);
  if (charges === undefined) {
    charges = toCharges(view, chooseLimits(view, []));
    ownCharges.set(view, charges);
  }
  return charges;
}

const toCharges = ({ key: { workspaceId } }: KeyView, limits: readonly SelectedLimit[]): Charges => ({
  limits,
  asked: limits.map(({ name, identifier, limit, durationMs, cost }) => ({
    workspaceId,
    scope: { kind: "name", value: name },
    identifier,
    limit,
    durationMs,
    cost,
    accuracy: "strict",
  })),
});

/** Throws PublicError: 412 for a limit that is not attached, 400 for a window that is too short. Nothing has been counted. */
function chooseLimits(view: KeyView, ratelimits: NonNullable<Body["ratelimits"]>): readonly SelectedLimit[] {
  const requested = ratelimits.map(({ name, cost, limit, duration }) => ({ name, cost, limit, durationMs: duration }));
  const selection = selectLimits(view, requested);
  if ("limits" in selection) return selection.limits;
  if ("tooShort" in selection) {
    const index = ratelimits.findLastIndex(({ name }) => name === selection.tooShort);
    throw invalidField(`body.ratelimits[${index}].duration`, "expected at least 1000 ms");
  }
  const { key, identity } = view;
  const owner = identity === undefined ? "" : ` nor to its identity ${identity.id} (${identity.externalId})`;
  throw new PublicError(
    "precondition_failed",
    `The rate limit ${selection.unknown} is not attached to the key ${key.keyId}${owner}; give both limit and duration to use one that is not.`,
  );
}

/** Refused before credits were reached: the answer shows how many there are all the same, if that can be read. */
async function finishUncounted(call: Call<Body>, view: KeyView, code: Code, startedMs: number): Promise<DataJson> {
  const { workspaceId, keyId } = view.key;
  let credits: number | undefined;
  try {
    credits = await call.deps.credits.readRemaining({ workspaceId, keyId });
  } catch (error) {
    // The decision stands without the database; what it would only have added is left out.
    if (!isDatabaseUnavailable(error)) throw error;
  }
  return finish(call, view, { code, credits, startedMs });
}

function countAndFinish(
  call: Call<Body>,
  view: KeyView,
  { limits, asked }: Charges,
  startedMs: number,
): Promise<DataJson> {
  const { workspaceId, keyId, limited } = view.key;
  if (!limited) {
    return consumeLimits(call.deps, asked).then((counted) => {
      const code = settle(undefined, { passed: counted.passed });
      return finish(call, view, { code, limits, outcomes: counted.limits, startedMs });
    });
  }
  const creditCost = call.body.credits?.cost ?? 1;
  return consumeForKey(call.deps, { workspaceId, keyId, limits: asked, creditCost }).then((counted) => {
    const code = settle(undefined, counted);
    const spentCredits = code === "VALID" ? creditCost : 0;
    const credits = counted.credits?.remaining;
    return finish(call, view, { code, limits, outcomes: counted.limits, credits, spentCredits, startedMs });
  });
}

interface Outcome {
  readonly code: Code;
  readonly limits?: readonly SelectedLimit[];
  /** One for each limit. */
  readonly outcomes?: readonly LimitOutcome[];
  /** What remains. */
  readonly credits?: number | undefined;
  readonly spentCredits?: number | undefined;
  readonly startedMs: number;
}

const NO_TAGS: readonly string[] = [];

/** By key view: what all its events say, as JSON. */
const subjects = new WeakMap<KeyView, string>();

function findSubject(view: KeyView, region: string): string {
  let subject = subjects.get(view);
  if (subject === undefined) {
    const { workspaceId, keySpaceId, apiId, keyId } = view.key;
    const { id: identityId, externalId } = view.identity ?? {};
    const source = "api";
    subject = subjectJson({ workspaceId, keySpaceId, apiId, keyId, identityId, externalId, region, source });
    subjects.set(view, subject);
  }
  return subject;
}

/** Records the verification and makes the answer. */
function finish({ body, deps, origin }: Call<Body>, view: KeyView, outcome: Outcome): DataJson {
  const { code, limits, outcomes, credits, spentCredits = 0, startedMs } = outcome;
  deps.events.addLine(
    view.key.workspaceId,
    verificationLine(findSubject(view, deps.region), {
      // One verification per request: its id is as unique as an event's must be.
      id: origin.requestId,
      requestId: origin.requestId,
      timeMs: deps.nowMs(),
      outcome: code,
      tags: body.tags ?? NO_TAGS,
      spentCredits,
      latencyMs: Math.round((performance.now() - startedMs) * 1000) / 1000,
    }),
  );
  return toDataJson(view, { code, limits, outcomes, credits });
}
