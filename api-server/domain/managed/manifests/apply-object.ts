import { PublicError } from "../../../../core/errors.ts";
import type { Kind } from "../../../../core/manifests/index.ts";
import { requireManager } from "../../../../core/manifests/manager.ts";
import type { Queryable } from "../../../../postgres/queryable.ts";
import { insertAudit } from "../../../db/audit.ts";
import { type Fence, raiseFence, shareLockFence } from "../../../db/operator-fences.ts";
import { inTransaction, type JoinedTransaction } from "../../../db/transaction.ts";
import type { Actor } from "../../actor.ts";
import type { RequiredPermission } from "../../permissions/required-permissions.ts";
import { type ManifestDeps as Deps, managing, type Transaction } from "./application.ts";

/** Kinds that `managed.applyObject` stores. */
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
  /** Whether to roll the work back after it has been performed. Its result is returned in either case. */
  readonly dryRun: boolean;
  /** Fencing number of the operator: the number of transitions of its Lease. `undefined` for callers without a Lease. */
  readonly onlyIfFence?: number | undefined;
}

/**
 * Runs the work for one manifest in one transaction, which the use cases that it calls join.
 * @throws PublicError 409 `stale_leader` if an operator with a higher fencing number has called before.
 */
export async function inManifestTransaction<Required extends RequiredPermission, Result>(
  actor: Actor<Required, Deps>,
  options: ApplyOptions,
  work: (transaction: Transaction<Required>) => Promise<Result>,
): Promise<Result> {
  const { manager, dryRun, onlyIfFence: fence } = options;
  const { deps, caller } = actor;
  const afterwards: (() => Promise<void>)[] = [];
  try {
    return await inTransaction(deps, async (tx) => {
      if (fence !== undefined) {
        const { cluster } = requireManager(manager);
        await requireFence(tx, { workspaceId: caller.workspaceId, cluster, fence }, dryRun);
      }
      const events: JoinedTransaction["events"] = [];
      const joined = { tx, events, afterwards: (one: () => Promise<void>) => afterwards.push(one) };
      const result = await work({ tx, actor: joining(actor, joined, options) });
      if (dryRun) throw new DryRunDone(result);
      await insertAudit(tx, managing(actor, { manager }), events);
      return result;
    });
  } catch (error) {
    if (error instanceof DryRunDone) return error.result as Result;
    throw error;
  } finally {
    for (const one of afterwards) await one();
  }
}

/** Thrown to roll back a dry run. */
class DryRunDone extends Error {
  readonly result: unknown;
  constructor(result: unknown) {
    super();
    this.result = result;
  }
}

/**
 * Checks the fencing number and raises the stored one, before the transaction locks anything else. If the call fails later, the increase is
 * rolled back: otherwise, a root key without permissions could lock out the operator with a high number.
 */
async function requireFence(tx: Queryable, wanted: Fence, dryRun: boolean): Promise<void> {
  const stored = (await shareLockFence(tx, wanted)) ?? (dryRun ? undefined : await raiseFence(tx, wanted));
  if (stored === undefined || stored <= wanted.fence) return;
  throw new PublicError(
    "stale_leader",
    `The fencing number ${wanted.fence} is older than ${stored}: another replica of the operator leads.`,
  );
}

/** Returns the actor for use cases that run in `tx`. A dry run is rolled back, so it requires only the permissions to read. */
const joining = <Required extends RequiredPermission>(
  actor: Actor<Required, Deps>,
  joined: JoinedTransaction,
  { manager, dryRun }: Pick<ApplyOptions, "manager" | "dryRun">,
): Actor<Required, Deps> => ({
  ...actor,
  management: { manager, adopt: false, release: false },
  // Reads use the transaction's connection too, because a second connection per call could exhaust the pool.
  deps: { ...actor.deps, joined, db: joined.tx as unknown as Deps["db"] },
  ...(dryRun ? { require: (required, id) => (isRead(required.action) ? actor.require(required, id) : undefined) } : {}),
});

const isRead = (action: string): boolean => action.startsWith("read_");
