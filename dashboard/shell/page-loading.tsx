import type { ReactNode } from "react";

export function PageLoading(): ReactNode {
  return (
    <p className="muted loading" role="status">
      Loading …
    </p>
  );
}
