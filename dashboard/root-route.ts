import { createRootRoute, retainSearchParams } from "@tanstack/react-router";
import { ErrorPage } from "./shell/error-page.tsx";
import { NoPage } from "./shell/no-page.tsx";
import { Shell } from "./shell/shell.tsx";

/** Search parameters that every address may have. */
export interface RootSearch {
  /** Id of the workspace that the page shows, so that a shared link opens the same workspace. */
  readonly workspace?: string;
}

export const rootRoute = createRootRoute({
  component: Shell,
  notFoundComponent: NoPage,
  errorComponent: ErrorPage,
  validateSearch: ({ workspace }: Record<string, unknown>): RootSearch =>
    typeof workspace === "string" && workspace !== "" ? { workspace } : {},
  search: { middlewares: [retainSearchParams(["workspace"])] },
});
