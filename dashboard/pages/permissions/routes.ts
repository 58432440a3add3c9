import { createRoute } from "@tanstack/react-router";
import { textsIn } from "../../components/address-text.ts";
import { rootRoute } from "../../root-route.ts";

interface Search {
  /** Part of a permission's name or slug. */
  readonly search?: string;
  /** Part of a role's name. */
  readonly roles?: string;
}

export const permissionsRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/permissions",
    validateSearch: (search: Record<string, unknown>): Search => textsIn(search, "search", "roles"),
  }).lazy(() => import("./page.tsx").then(({ Route }) => Route)),
] as const;
