import type { ReactNode } from "react";
import { Badge } from "./badge.tsx";

/** Shows whether a listed key is enabled. The key's details also cover its limits and its API. */
export function StateBadge({
  enabled,
  expires,
  nowMs,
}: {
  enabled: boolean;
  expires: number | undefined;
  nowMs: number;
}): ReactNode {
  if (!enabled) return <Badge kind="bad">disabled</Badge>;
  if (expires !== undefined && nowMs > expires) return <Badge kind="warn">expired</Badge>;
  return <Badge kind="good">enabled</Badge>;
}

/** Shows whether a request was within a rate limit. */
export const LimitBadge = ({ passed }: { passed: boolean }): ReactNode => (
  <Badge kind={passed ? "good" : "bad"}>{passed ? "within the limit" : "over the limit"}</Badge>
);
