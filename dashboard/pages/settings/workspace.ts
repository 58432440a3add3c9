import type { Procedure } from "../../../core/api/procedures.ts";
import { workspaceNameProblem } from "../../../core/workspaces/workspace.ts";
import type { Row } from "../../api/queries.ts";

export type Workspace = Row<"admin.listWorkspaces">;

/** Procedures to read again after a change of a workspace. */
export const SHOWN_BY: readonly Procedure[] = ["admin.listWorkspaces", "admin.getSettings"];

export const quotaText = (perMinute: number | null): string =>
  perMinute === null ? "unlimited" : `${perMinute.toLocaleString("en")} per minute`;

export const NAME_HINT =
  "1 to 63 letters, digits, dots, dashes and underscores, not beginning with ws_. The name is also valid as a Kubernetes label value.";

/** Returns the problem with a name, to show at its field; `undefined` while the name is empty. */
export function nameProblem(name: string): string | undefined {
  const problem = name === "" ? undefined : workspaceNameProblem(name);
  return problem === undefined ? undefined : `${problem[0]?.toUpperCase()}${problem.slice(1)}.`;
}
