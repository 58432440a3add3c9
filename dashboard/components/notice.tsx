import type { ReactNode } from "react";
import "./notice.css";

/** Notice for the person. Screen readers announce the kinds `bad` and `warn` immediately. */
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
