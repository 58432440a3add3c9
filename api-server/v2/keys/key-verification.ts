import { PublicError } from "../../../core/errors.ts";
import { hashKey } from "../../../core/keys/key-string.ts";
import { parseQuery, type Query, QuerySyntaxError } from "../../../core/permissions/query.ts";
import type { KeyRecord } from "../../../core/records.ts";
import { KeyView } from "../../../core/verification/key-view.ts";
import { type ChargePlan, planCall } from "../../../core/verification/plan-charges.ts";
import type { SelectedLimit } from "../../../core/verification/select-limits.ts";
import type { Lookup } from "../../../edge/projection/contract.ts";
import type { WithoutStore } from "../../../edge/verification/count.ts";
import type { Verification } from "../../../edge/verification/verify.ts";
import { takeOverMigratedKey } from "../../domain/keys/migrated-keys.ts";
import { LIMITS_ALONE, WITH_CREDITS } from "../../domain/ratelimits/counting.ts";
import { invalidField } from "../../domain/refusals/invalid-field.ts";
import { onApi } from "../../needed-permissions.ts";
import type { CallNeeding } from "../../procedure.ts";
import type { Body } from "./verify-schemas.ts";

/** On the API of the key: the caller learns nothing about a key of another API. */
export const VERIFY_KEY = onApi("verify_key");

type VerifyCall = CallNeeding<Body, typeof VERIFY_KEY>;

/** A call of `keys.verifyKey` for edge/verification: its root key decides which keys it may see, its body what is verified. */
export class KeyVerification implements Verification {
  readonly clientIp: string;
  readonly #workspaceId: string;
  readonly #call: VerifyCall;
  #selected: readonly SelectedLimit[] = [];

  constructor(call: VerifyCall) {
    this.#workspaceId = call.caller.workspaceId;
    this.clientIp = call.origin.clientIp;
    this.#call = call;
  }

  /** The sources of the counted limits, in their order. */
  get selected(): readonly SelectedLimit[] {
    return this.#selected;
  }

  find(): Lookup<KeyView> | Promise<Lookup<KeyView>> {
    const hash = hashKey(this.#call.body.key);
    const found = this.#call.deps.projection.findKey(this.#workspaceId, hash);
    return found instanceof Promise ? found.then((late) => this.#orMigrated(late, hash)) : found;
  }

  maySee({ workspaceId, apiId }: KeyRecord): boolean {
    return workspaceId === this.#workspaceId && this.#mayVerify(apiId);
  }

  /** Throws PublicError 400 for a query that does not parse. */
  readQuery(): Query | undefined {
    const { permissions } = this.#call.body;
    return permissions === undefined ? undefined : readQuery(permissions);
  }

  /** Throws PublicError: 412 for a limit that is not attached, 400 for a window that is too short. */
  plan(view: KeyView): ChargePlan {
    const { ratelimits, credits } = this.#call.body;
    const namesLimits = ratelimits !== undefined && ratelimits.length > 0;
    const plan = namesLimits ? planOf(view, this.#call.body) : withCost(defaultPlan(view), credits?.cost);
    this.#selected = plan.selected;
    return plan;
  }

  withoutStore({ credits }: ChargePlan): WithoutStore {
    return credits === undefined ? LIMITS_ALONE : WITH_CREDITS;
  }

  #mayVerify(apiId: string): boolean {
    return this.#call.holds(VERIFY_KEY, apiId);
  }

  /** An imported key is rewritten as one of ours at its first use (api-v2.md section 12.4). */
  async #orMigrated(lookup: Lookup<KeyView>, hash: string): Promise<Lookup<KeyView>> {
    const { body, deps } = this.#call;
    const { key, migrationId } = body;
    if (lookup.status !== "absent" || migrationId === undefined) return lookup;
    const workspaceId = this.#workspaceId;
    const presented = { workspaceId, migrationId, key, hash, mayVerify: (apiId: string) => this.#mayVerify(apiId) };
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

/** Most calls name no limit and no cost: then the charges depend only on the key. */
const defaultPlan = KeyView.remember((view) => planOf(view, {}));

/** The limits stay the same list, by which the counters remember what they made of it. */
const withCost = (plan: ChargePlan, cost: number | undefined): ChargePlan =>
  cost === undefined || plan.credits === undefined ? plan : { ...plan, credits: { ...plan.credits, cost } };

function planOf(view: KeyView, { ratelimits = [], credits }: Pick<Body, "ratelimits" | "credits">): ChargePlan {
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
    `The rate limit ${plan.unknown} is not attached to the key ${key.keyId}${owner}; give both limit and duration to use one that is not.`,
  );
}
