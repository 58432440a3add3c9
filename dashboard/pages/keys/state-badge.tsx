import type { ReactNode } from "react";
import { Badge } from "../../components/badge.tsx";

/** Whether a key of a list is on. What its limits and its API say of it is in its details. */
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
