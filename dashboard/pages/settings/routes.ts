import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../root-route.ts";

interface Search {
  /** Part of a name or id. */
  readonly search?: string;
}

export const settingsRoutes = [
  createRoute({ getParentRoute: () => rootRoute, path: "/settings" }).lazy(() =>
    import("./settings.tsx").then(({ Route }) => Route),
  ),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/workspaces",
    validateSearch: ({ search }: Record<string, unknown>): Search =>
      typeof search === "string" && search !== "" ? { search } : {},
  }).lazy(() => import("./workspaces.tsx").then(({ Route }) => Route)),
] as const;
