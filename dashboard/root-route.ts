import { createRootRoute, retainSearchParams } from "@tanstack/react-router";
import { ErrorPage } from "./shell/error-page.tsx";
import { NoPage } from "./shell/no-page.tsx";
import { Shell } from "./shell/shell.tsx";

/** What every address may say. */
export interface RootSearch {
  /** The workspace that the page shows, so that a link shows the same to the next person. */
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
