import type { ReactNode } from "react";
import "./notice.css";

/** Something that a person should know now. `bad` and `warn` are read out at once. */
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
