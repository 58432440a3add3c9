import { createRoute } from "@tanstack/react-router";
import { textsIn } from "../../components/address-text.ts";
import { rootRoute } from "../../root-route.ts";

interface Search {
  /** Part of the policy names. */
  readonly search?: string;
}

export const policiesRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/policies",
    validateSearch: (search: Record<string, unknown>): Search => textsIn(search, "search"),
  }).lazy(() => import("./list.tsx").then(({ Route }) => Route)),
  createRoute({ getParentRoute: () => rootRoute, path: "/policies/$policyId" }).lazy(() =>
    import("./details.tsx").then(({ Route }) => Route),
  ),
] as const;
