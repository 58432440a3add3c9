import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../root-route.ts";
import { readUsageSearch } from "../../usage/search.ts";

export const usageRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/usage",
    validateSearch: readUsageSearch,
  }).lazy(() => import("./overview.tsx").then(({ Route }) => Route)),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/usage/sql",
  }).lazy(() => import("./sql/sql-page.tsx").then(({ Route }) => Route)),
] as const;
