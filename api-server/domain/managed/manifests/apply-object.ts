import { PublicError } from "../../../../core/errors.ts";
import type { Kind } from "../../../../core/manifests/index.ts";
import { parseManager } from "../../../../core/manifests/manager.ts";
import { raiseFence, shareLockFence } from "../../../db/operator-fences.ts";
import { inTransaction, type JoinedTransaction } from "../../../db/transaction.ts";
import type { Actor } from "../../actor.ts";
import type { RequiredPermission } from "../../permissions/required-permissions.ts";
import type { ManifestDeps as Deps, Transaction } from "./application.ts";

/** Kinds whose manifests one call applies. */
export const APPLIED_KINDS = [
  "ApiKey",
  "ApiKeyPolicy",
  "RatelimitNamespace",
  "RatelimitOverride",
  "Role",
] as const satisfies Kind[];
export type AppliedKind = (typeof APPLIED_KINDS)[number];

export interface ApplyOptions {
  readonly manager: string;
  /** Performs the work, returns its result, and rolls it back. */
  readonly dryRun: boolean;
  /** Fencing number of the operator: the count of transitions of its Lease. `undefined` for callers without a Lease. */
  readonly onlyIfFence?: number | undefined;
}

/**
 * Runs the work for one manifest in one transaction, in which the use cases that it calls take part.
 * @throws PublicError 409 `stale_leader` if an operator with a higher fencing number has called before.
 */
export async function inManifestTransaction<Required extends RequiredPermission, Result>(
  actor: Actor<Required, Deps>,
  options: ApplyOptions,
  work: (transaction: Transaction<Required>) => Promise<Result>,
): Promise<Result> {
  const { manager, dryRun, onlyIfFence: fence } = options;
  const { deps, caller } = actor;
  const ref = { workspaceId: caller.workspaceId, cluster: parseManager(manager)?.cluster ?? "" };
  let undone: { readonly result: Result } | undefined;
  const afterwards: (() => Promise<void>)[] = [];
  const attempt = () =>
    inTransaction(deps, async (tx) => {
      const stored = fence === undefined ? undefined : await shareLockFence(tx, ref);
      requireFence(stored, fence);
      const joined = { tx, afterwards: (one: () => Promise<void>) => afterwards.push(one) };
      const result = await work({ tx, actor: joining(actor, joined, options) });
      if (!dryRun && stored === fence) return result;
      undone = { result };
      throw new RolledBack();
    });
  try {
    return await attempt();
  } catch (error) {
    if (!(error instanceof RolledBack) || undone === undefined) throw error;
    if (dryRun || fence === undefined) return undone.result;
    // Raises the number only for a caller that may do the work, and outside of the transaction, which has locked the lower one.
    await raiseFence(deps.db, { ...ref, fence });
    return await attempt();
  } finally {
    for (const one of afterwards) await one();
  }
}

/** Thrown to roll back a dry run, or an attempt before the fencing number is raised. */
class RolledBack extends Error {}

function requireFence(stored: number | undefined, fence: number | undefined): void {
  if (stored === undefined || fence === undefined || stored <= fence) return;
  throw new PublicError(
    "stale_leader",
    `The fencing number ${fence} is older than ${stored}: another replica of the operator leads.`,
  );
}

/** Returns the actor for use cases that run in `tx`. A dry run writes nothing that stays, so it needs only the permissions to read. */
const joining = <Required extends RequiredPermission>(
  actor: Actor<Required, Deps>,
  joined: JoinedTransaction,
  { manager, dryRun }: Pick<ApplyOptions, "manager" | "dryRun">,
): Actor<Required, Deps> => ({
  ...actor,
  management: { manager, adopt: false, release: false },
  // Reads in the same transaction too: a second connection per call could use up the pool.
  deps: { ...actor.deps, joined, db: joined.tx as unknown as Deps["db"] },
  ...(dryRun ? { require: (required, id) => (isRead(required.action) ? actor.require(required, id) : undefined) } : {}),
});

const isRead = (action: string): boolean => action.startsWith("read_");
