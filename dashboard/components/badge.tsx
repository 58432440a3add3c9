import type { ReactNode } from "react";
import "./badge.css";

/** A state in a word. The word says it; the color only helps to find it. */
export function Badge({
  kind = "plain",
  title,
  children,
}: {
  kind?: "plain" | "good" | "warn" | "bad";
  /** Why it is so. */
  title?: string | undefined;
  children: ReactNode;
}): ReactNode {
  return (
    <span className={`badge badge-${kind}`} title={title}>
      {children}
    </span>
  );
}
