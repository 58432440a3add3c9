import { PublicError } from "../../../core/errors.ts";
import { JsonQueryError, readJsonQuery } from "../../../core/permissions/json-query.ts";
import type { Query } from "../../../core/permissions/query.ts";
import { KeyView } from "../../../core/verification/key-view.ts";
import { type ChargePlan, planCall } from "../../../core/verification/plan-charges.ts";
import type { RequestedLimit, SelectedLimit } from "../../../core/verification/select-limits.ts";
import type { Lookup, MaybePromise } from "../../../edge/projection/contract.ts";
import type { WithoutStore } from "../../../edge/verification/count.ts";
import type { Verification } from "../../../edge/verification/verify.ts";
import { LIMITS_ALONE, WITH_CREDITS } from "../../domain/ratelimits/counting.ts";
import { invalidField } from "../../domain/refusals/refusals.ts";
import type { OpenCall } from "../../procedure.ts";
import { LEGACY_LIMIT } from "./legacy-limit.ts";
import type { Body } from "./verify-schemas.ts";

/**
 * A call of v1's `keys.verifyKey` for edge/verification. It has no root key. It can verify a key of any workspace, because its caller has
 * the key's secret. An invalid query or limit is reported only if the key is otherwise valid.
 */
export class OpenVerification implements Verification {
  readonly clientIp: string;
  readonly apiId: string | undefined;
  readonly readsQueryLast = true;
  readonly #call: OpenCall<Body>;
  readonly #workspaceId: string;
  readonly #hash: string;
  #selected: readonly SelectedLimit[] = [];

  /** @param key hash of the secret, and the key's workspace. */
  constructor(call: OpenCall<Body>, { hash, workspaceId }: { hash: string; workspaceId: string }) {
    this.clientIp = call.origin.clientIp;
    this.apiId = call.body.apiId;
    this.#call = call;
    this.#workspaceId = workspaceId;
    this.#hash = hash;
  }

  /** Returns the limits of the verification with their sources, in the order in which they are counted. */
  get selected(): readonly SelectedLimit[] {
    return this.#selected;
  }

  find(): MaybePromise<Lookup<KeyView>> {
    return this.#call.deps.projection.findKey(this.#workspaceId, this.#hash);
  }

  maySee(): boolean {
    return true;
  }

  /** Parses the query. Throws PublicError 400 if it is invalid. */
  readQuery(): Query | undefined {
    try {
      return readJsonQuery(this.#call.body.authorization?.permissions);
    } catch (error) {
      if (!(error instanceof JsonQueryError)) throw error;
      const place = error.place === "" ? "" : `.${error.place}`;
      throw invalidField(`body.authorization.permissions${place}`, error.message);
    }
  }

  /**
   * Returns the charges of the call. Throws PublicError 400 for a limit that neither the key nor its identity has, and for a window that is
   * too short.
   */
  plan(view: KeyView): ChargePlan {
    const { ratelimit, ratelimits = [], remaining } = this.#call.body;
    const isPlain = ratelimits.length === 0 && ratelimit === undefined && remaining === undefined;
    const plan = isPlain ? plainPlan(view) : planOf(view, this.#call.body);
    this.#selected = plan.selected;
    return plan;
  }

  withoutStore({ credits }: ChargePlan): WithoutStore {
    return credits === undefined ? LIMITS_ALONE : WITH_CREDITS;
  }
}

/**
 * Charges of a call that specifies neither limits nor costs. Most calls are like this, so these charges are cached: they depend only on the
 * key.
 */
const plainPlan = KeyView.remember((view) => planOf(view, {}));

function planOf(view: KeyView, body: Pick<Body, "ratelimit" | "ratelimits" | "remaining">): ChargePlan {
  const { ratelimits = [], remaining } = body;
  const requested = [...legacyRequest(view, body), ...ratelimits.map(toRequested)];
  const plan = planCall(view, { ratelimits: requested, creditCost: remaining?.cost ?? 1 });
  if ("limits" in plan) return plan;
  const isTooShort = "tooShort" in plan;
  const name = isTooShort ? plan.tooShort : plan.unknown;
  const field = `body.ratelimits[${ratelimits.findLastIndex((one) => one.name === name)}]`;
  if (isTooShort) throw invalidField(`${field}.duration`, "expected at least 1000 ms");
  throw invalidField(
    field,
    `the key ${view.key.keyId} has no limit ${name}; to use an unattached limit, pass both limit and duration`,
  );
}

const toRequested = ({ name, cost, limit, duration }: NonNullable<Body["ratelimits"]>[number]): RequestedLimit => ({
  name,
  cost,
  limit,
  durationMs: duration,
});

/**
 * Converts the deprecated `ratelimit` to a limit request. Its cost applies to the limit `default` if that limit is charged automatically
 * and is not in `ratelimits`.
 */
function legacyRequest(
  { key, identity }: KeyView,
  { ratelimit, ratelimits = [] }: Pick<Body, "ratelimit" | "ratelimits">,
): RequestedLimit[] {
  if (ratelimit === undefined || ratelimits.some(({ name }) => name === LEGACY_LIMIT)) return [];
  const isDefault = ({ name }: { readonly name: string }) => name === LEGACY_LIMIT;
  const stored = key.ratelimits.find(isDefault) ?? identity?.ratelimits.find(isDefault);
  return stored?.autoApply === true ? [{ name: LEGACY_LIMIT, cost: ratelimit.cost }] : [];
}

/** Returns the error 403, which reveals nothing about the key. v1 responds to every other outcome without an error. */
export const workspaceDisabled = (): PublicError => new PublicError("forbidden", "The workspace is disabled.");
