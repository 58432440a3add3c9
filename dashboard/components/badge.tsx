import type { CSSProperties, ReactNode } from "react";
import "./badge.css";

export type BadgeKind = "plain" | "good" | "warn" | "bad" | "off";

/** Shows a state as a word. The color only makes the state easier to find. */
export function Badge({
  kind = "plain",
  color,
  title,
  children,
}: {
  /** `off` is a state that is neither good nor bad, such as disabled. */
  kind?: BadgeKind;
  /** Name of the color property of a state that has its own color. */
  color?: `--series-${number}` | undefined;
  /** Reason for the state, shown as a tooltip. */
  title?: string | undefined;
  children: ReactNode;
}): ReactNode {
  return (
    <span
      className={color === undefined ? `badge badge-${kind}` : "badge badge-own"}
      style={color && ({ "--own": `var(${color})` } as CSSProperties)}
      title={title}
    >
      {children}
    </span>
  );
}
