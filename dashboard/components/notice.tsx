import type { ReactNode } from "react";
import "./notice.css";

/** Notice to the person. Screen readers announce `bad` and `warn` at once. */
export function Notice({
  kind = "info",
  actions,
  children,
}: {
  kind?: "info" | "good" | "warn" | "bad";
  actions?: ReactNode;
  children: ReactNode;
}): ReactNode {
  return (
    <div className={`notice notice-${kind}`} role={kind === "bad" || kind === "warn" ? "alert" : "status"}>
      <div className="notice-text">{children}</div>
      {actions !== undefined && <div className="notice-actions">{actions}</div>}
    </div>
  );
}
