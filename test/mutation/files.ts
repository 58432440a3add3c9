import { existsSync } from "node:fs";
import { join } from "node:path";

/** The files that make decisions, which are mutated when no file is named. */
export const DECIDING = [
  "api-server/domain/managed/rules.ts",
  "api-server/relay/delivered.ts",
  "api-server/relay/rebuild.ts",
  "api-server/relay/round.ts",
  "core/credits/credits.ts",
  "core/credits/refill.ts",
  "core/keys/key-string.ts",
  "core/keys/migration.ts",
  "core/keys/reroll.ts",
  "core/permissions/grants.ts",
  "core/permissions/query.ts",
  "core/permissions/root-key.ts",
  "core/policies/check-path.ts",
  "core/policies/identity-headers.ts",
  "core/policies/match-rule.ts",
  "core/policies/plan-rule.ts",
  "core/policies/stored-policy.ts",
  "core/ratelimits/decide-limits.ts",
  "core/ratelimits/limit-headers.ts",
  "core/ratelimits/overrides.ts",
  "core/ratelimits/window.ts",
  "core/verification/check-key.ts",
  "core/verification/conclude.ts",
  "core/verification/ip-address.ts",
  "core/verification/key-view.ts",
  "core/verification/plan-charges.ts",
  "core/verification/select-limits.ts",
  "edge/counters/deny-memory.ts",
  "edge/counters/sync.ts",
  "edge/counters/guard.ts",
  "edge/counters/local.ts",
  "edge/counters/memory.ts",
  "edge/counters/strict.ts",
  "edge/verification/apply-overrides.ts",
  "edge/verification/count.ts",
  "edge/verification/verify.ts",
  "operator/reconcilers/claims.ts",
  "operator/runtime/leader.ts",
  "sidecar/gate/judge.ts",
] as const;

/** Tests of a file besides the neighbour with its name. */
const ALSO: Readonly<Record<string, readonly string[]>> = {
  "core/permissions/grants.ts": ["core/permissions/query.test.ts"],
  "core/verification/key-view.ts": ["core/verification/check-key.test.ts"],
  "edge/counters/sync.ts": ["edge/counters/local.test.ts"],
  "edge/counters/memory.ts": ["edge/counters/local.test.ts"],
  "core/ratelimits/limit-headers.ts": ["core/verification/conclude.test.ts"],
  "core/verification/plan-charges.ts": ["core/policies/plan-rule.test.ts", "edge/verification/verify.test.ts"],
  "edge/counters/strict.ts": ["edge/counters/deny-memory.test.ts", "edge/counters/guard.test.ts"],
  "edge/verification/apply-overrides.ts": ["edge/verification/verify.test.ts"],
  "edge/verification/count.ts": ["edge/verification/verify.test.ts"],
};

/** The tests that run against the mutants of a file, as paths from `root`; empty when there is none. */
export function testsOf(file: string, root: string): string[] {
  const neighbour = file.replace(/\.ts$/, ".test.ts");
  return [...(existsSync(join(root, neighbour)) ? [neighbour] : []), ...(ALSO[file] ?? [])];
}
