import { PublicError } from "../../../core/errors.ts";
import { hashKey } from "../../../core/keys/key-string.ts";
import { parseQuery, type Query, QuerySyntaxError } from "../../../core/permissions/query.ts";
import type { KeyRecord } from "../../../core/records.ts";
import { KeyView } from "../../../core/verification/key-view.ts";
import { type ChargePlan, planCall } from "../../../core/verification/plan-charges.ts";
import type { SelectedLimit } from "../../../core/verification/select-limits.ts";
import type { Lookup, MaybePromise } from "../../../edge/projection/contract.ts";
import type { WithoutStore } from "../../../edge/verification/count.ts";
import type { Verification } from "../../../edge/verification/verify.ts";
import { takeOverMigratedKey } from "../../domain/keys/migrated-keys.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { LIMITS_ALONE, WITH_CREDITS } from "../../domain/ratelimits/counting.ts";
import { invalidField } from "../../domain/refusals/refusals.ts";
import type { CallNeeding } from "../../procedure.ts";
import type { Body } from "./verify-schemas.ts";

/** The members of a call that describe a verification, without the key. */
export type Asked = Pick<Body, "permissions" | "ratelimits" | "credits">;

/** Verification of `keys.verifyKey`. Subclasses define how the key is found, and which keys the caller is allowed to see. */
export abstract class CallVerification implements Verification {
  readonly clientIp: string | undefined;
  protected readonly workspaceId: string;
  readonly #asked: Asked;
  #selected: readonly SelectedLimit[] = [];

  constructor(asked: Asked, { workspaceId }: { readonly workspaceId: string }, clientIp: string | undefined) {
    this.#asked = asked;
    this.workspaceId = workspaceId;
    this.clientIp = clientIp;
  }

  abstract find(): MaybePromise<Lookup<KeyView>>;

  protected abstract mayVerify(apiId: string): boolean;

  /** Returns the limits of the verification with their sources, in the order in which they are counted. */
  get selected(): readonly SelectedLimit[] {
    return this.#selected;
  }

  maySee({ workspaceId, apiId }: KeyRecord): boolean {
    return workspaceId === this.workspaceId && this.mayVerify(apiId);
  }

  /** Parses the permission query. Throws PublicError 400 if it is invalid. */
  readQuery(): Query | undefined {
    const { permissions } = this.#asked;
    return permissions === undefined ? undefined : readQuery(permissions);
  }

  /**
   * Returns the charges of the call. Throws PublicError: 412 for a limit that neither the key nor its identity has, 400 for a window that
   * is too short.
   */
  plan(view: KeyView): ChargePlan {
    const { ratelimits, credits } = this.#asked;
    const namesLimits = ratelimits !== undefined && ratelimits.length > 0;
    const plan = namesLimits ? planOf(view, this.#asked) : withCost(defaultPlan(view), credits?.cost);
    this.#selected = plan.selected;
    return plan;
  }

  withoutStore({ credits }: ChargePlan): WithoutStore {
    return credits === undefined ? LIMITS_ALONE : WITH_CREDITS;
  }
}

/** Permission that is required on the key's API. A caller without it learns nothing about the key. */
export const VERIFY_KEY = onApi("verify_key");

type VerifyCall = CallNeeding<Body, typeof VERIFY_KEY>;

/**
 * A call of `keys.verifyKey` for edge/verification. The root key determines which keys the call can see, and the body determines the
 * checks.
 */
export class KeyVerification extends CallVerification {
  readonly #call: VerifyCall;

  constructor(call: VerifyCall) {
    super(call.body, call.caller, call.origin.clientIp);
    this.#call = call;
  }

  find(): MaybePromise<Lookup<KeyView>> {
    const hash = hashKey(this.#call.body.key);
    const found = this.#call.deps.projection.findKey(this.workspaceId, hash);
    return found instanceof Promise ? found.then((late) => this.#orMigrated(late, hash)) : found;
  }

  protected mayVerify(apiId: string): boolean {
    return this.#call.holds(VERIFY_KEY, apiId);
  }

  /** Rewrites an imported key under its own hash on first use (api-v2.md section 12.4). */
  async #orMigrated(lookup: Lookup<KeyView>, hash: string): Promise<Lookup<KeyView>> {
    const { body, deps } = this.#call;
    const { key, migrationId } = body;
    if (lookup.status !== "absent" || migrationId === undefined) return lookup;
    const { workspaceId } = this;
    const presented = { workspaceId, migrationId, key, hash, mayVerify: (apiId: string) => this.mayVerify(apiId) };
    return (await takeOverMigratedKey(deps, presented)) ? deps.projection.findKey(workspaceId, hash) : lookup;
  }
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

const DEFAULT_CREDIT_COST = 1;

/**
 * Charges of a call that specifies neither limits nor costs. Most calls are like this, so these charges are cached: they depend only on the
 * key.
 */
const defaultPlan = KeyView.remember((view) => planOf(view, {}));

/** Returns the plan with another cost. The list of limits remains the same object, because the counters cache data by this object. */
const withCost = (plan: ChargePlan, cost: number | undefined): ChargePlan =>
  cost === undefined || plan.credits === undefined ? plan : { ...plan, credits: { ...plan.credits, cost } };

function planOf(view: KeyView, { ratelimits = [], credits }: Pick<Asked, "ratelimits" | "credits">): ChargePlan {
  const plan = planCall(view, {
    ratelimits: ratelimits.map(({ name, cost, limit, duration }) => ({ name, cost, limit, durationMs: duration })),
    creditCost: credits?.cost ?? DEFAULT_CREDIT_COST,
  });
  if ("limits" in plan) return plan;
  if ("tooShort" in plan) {
    const index = ratelimits.findLastIndex(({ name }) => name === plan.tooShort);
    throw invalidField(`body.ratelimits[${index}].duration`, "expected at least 1000 ms");
  }
  const { key, identity } = view;
  const owner = identity === undefined ? "" : ` nor to its identity ${identity.id} (${identity.externalId})`;
  throw new PublicError(
    "precondition_failed",
    `The rate limit ${plan.unknown} is not attached to the key ${key.keyId}${owner}; to use an unattached limit, pass both limit and duration.`,
  );
}
