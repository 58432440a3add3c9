import { createRoute } from "@tanstack/react-router";
import { textsIn } from "../../components/address-text.ts";
import { rootRoute } from "../../root-route.ts";

interface Search {
  /** Part of a name or identifier. */
  readonly search?: string;
}

const readSearch = (search: Record<string, unknown>): Search => textsIn(search, "search");

export const ratelimitsRoutes = [
  createRoute({ getParentRoute: () => rootRoute, path: "/ratelimits", validateSearch: readSearch }).lazy(() =>
    import("./list.tsx").then(({ Route }) => Route),
  ),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/ratelimits/$namespaceId",
    validateSearch: readSearch,
  }).lazy(() => import("./namespace.tsx").then(({ Route }) => Route)),
] as const;
