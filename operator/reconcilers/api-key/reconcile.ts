import type { ManifestObject } from "../../source/contract.ts";
import { type Context, LeadershipLost } from "../context.ts";
import { labelOf } from "../names-in-messages.ts";
import { CONFLICT_REQUEUE_MS, type Result, type Verdict } from "../plan.ts";
import type { KindSteps, Ownership } from "../reconcile-object.ts";
import { verdictOn } from "../refusals.ts";
import { wasReady } from "../status.ts";
import { applyApiKey, describeApiKey } from "./apply.ts";
import { gatherApiKey } from "./gather.ts";
import { type ApiKeyAction, planApiKey } from "./plan.ts";

/*
 * Reconciles an ApiKey in passes: gather, plan, apply, until no action remains. A key and its Secret cannot change in one transaction, so
 * each step leaves a state from which the next pass, or another operator, continues.
 */

export const apiKeySteps: KindSteps = { reconcile: reconcileApiKey };

/** Maximum number of passes. Issuing, storing and renaming a key take three; more passes mean that another writer is active. */
const PASSES_MAX = 6;

async function reconcileApiKey(object: ManifestObject, ctx: Context, ownership: Ownership): Promise<Result | "again"> {
  let drift: string | undefined;
  for (let pass = 1; pass <= PASSES_MAX; pass++) {
    const { actions, isDue, ...result } = planApiKey(await gatherApiKey(object, ctx));
    if (result.released) return result;
    const isDeleting = object.metadata.deletionTimestamp !== undefined;
    const hasCounterpart = actions.length > 0 || result.verdict.state === "Ready";
    if (hasCounterpart && !isDeleting && !(await ownership.own())) return "again";
    if (actions.length === 0) return { ...result, drift };
    if (pass === 1 && !isDeleting && !isDue && wasReady(object)) drift = actions.map(describeApiKey).join("; ");
    const verdict = await applyAll(actions, object, ctx);
    if (verdict !== undefined) return { ...result, verdict, requeueAfterMs: CONFLICT_REQUEUE_MS };
  }
  return "again";
}

/** Applies the actions until one of them is refused permanently, and returns the resulting verdict. */
async function applyAll(
  actions: readonly ApiKeyAction[],
  object: ManifestObject,
  ctx: Context,
): Promise<Verdict | undefined> {
  for (const action of actions) {
    if (ctx.signal.aborted) throw new LeadershipLost("this replica no longer leads");
    const applied = await applyApiKey(action, object, ctx);
    if (applied.verdict !== undefined) return applied.verdict;
    if (applied.refusal !== undefined) return verdictOn(applied.refusal, object, ctx);
    ctx.log.info({ object: labelOf(object), generation: object.metadata.generation }, describeApiKey(action));
  }
  return undefined;
}
