import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../root-route.ts";

interface Search {
  /** Part of a permission. */
  readonly search?: string;
  /** Part of a role. */
  readonly roles?: string;
}

const textIn = (value: unknown): value is string => typeof value === "string" && value !== "";

export const permissionsRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/permissions",
    validateSearch: ({ search, roles }: Record<string, unknown>): Search => ({
      ...(textIn(search) ? { search } : {}),
      ...(textIn(roles) ? { roles } : {}),
    }),
  }).lazy(() => import("./page.tsx").then(({ Route }) => Route)),
] as const;
