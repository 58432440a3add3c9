import type { ReactNode } from "react";
import "./badge.css";

/** Shows a state as a word. The color only makes the state easier to find. */
export function Badge({
  kind = "plain",
  title,
  children,
}: {
  kind?: "plain" | "good" | "warn" | "bad";
  /** Reason for the state, shown as a tooltip. */
  title?: string | undefined;
  children: ReactNode;
}): ReactNode {
  return (
    <span className={`badge badge-${kind}`} title={title}>
      {children}
    </span>
  );
}
