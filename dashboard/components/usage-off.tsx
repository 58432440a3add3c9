import type { ReactNode } from "react";
import { Notice } from "./notice.tsx";

/** Notice that usage queries are off for the workspace, and how to turn them on. */
export function UsageOff(): ReactNode {
  return (
    <Notice kind="warn">
      <p>
        <strong>Usage queries are off for this workspace.</strong>
      </p>
      <p>
        An admin of the workspace can turn them on in the settings or with{" "}
        <code>postern workspace update --analytics on</code>. Events are counted in any case.
      </p>
    </Notice>
  );
}
