import type { RatelimitRow } from "../../db/ratelimits.ts";
import type { CountingDeps } from "../deps.ts";
import { type LimitCount, readCounts } from "../ratelimits/read-counts.ts";

/** A limit of a key, or of its identity, with the state of its counter. */
export interface LimitInUse {
  readonly row: RatelimitRow;
  readonly of: "key" | "identity";
  /** Whether this is a limit of the identity that the key's own limit of the same name overrides. */
  readonly isReplaced: boolean;
  /** State of the counter; `undefined` while the Redis counters are unreachable. */
  readonly current: LimitCount | undefined;
}

/** Reads the counters without charging them; on a single Redis, all in one round trip. The key's own limits come first. */
export async function readLimitsInUse(
  deps: Pick<CountingDeps, "counters">,
  workspaceId: string,
  {
    keyId,
    own,
    identity,
  }: {
    readonly keyId: string;
    readonly own: readonly RatelimitRow[];
    readonly identity: { readonly id: string; readonly limits: readonly RatelimitRow[] } | undefined;
  },
): Promise<LimitInUse[]> {
  const names = new Set(own.map(({ name }) => name));
  const limits = [
    ...own.map((row) => ({ row, of: "key" as const, identifier: keyId, isReplaced: false })),
    ...(identity?.limits ?? []).map((row) => ({
      row,
      of: "identity" as const,
      identifier: identity?.id ?? "",
      isReplaced: names.has(row.name),
    })),
  ];
  const counts = await readCounts(
    deps,
    limits.map(({ row, identifier }) => ({
      workspaceId,
      scope: { kind: "name", value: row.name },
      identifier,
      limit: row.max_count,
      durationMs: row.duration_ms,
    })),
  );
  return limits.map(({ row, of, isReplaced }, i) => ({ row, of, isReplaced, current: counts?.[i] }));
}
