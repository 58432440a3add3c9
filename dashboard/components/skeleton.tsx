import type { ReactNode } from "react";
import "./skeleton.css";

/**
 * Gray area in place of content that is being loaded. It is as high as the content will be, so that nothing jumps when the content arrives.
 */
export function Skeleton({
  heightPx,
  label = "Loading …",
  hasRows = false,
}: {
  heightPx: number;
  /** Text for screen readers. */
  label?: string;
  /** Whether the content is a list. */
  hasRows?: boolean;
}): ReactNode {
  return (
    <div className="skeleton-box" role="status">
      <span className="unseen">{label}</span>
      <div className={hasRows ? "skeleton skeleton-rows" : "skeleton"} style={{ height: heightPx }} />
    </div>
  );
}
