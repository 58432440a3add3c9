import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../root-route.ts";
import { type KeyFilters, readFilters } from "./filters.ts";

export const keysRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/keys",
    validateSearch: (search: Record<string, unknown>): KeyFilters => readFilters(search),
  }).lazy(() => import("./list.tsx").then(({ Route }) => Route)),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/keys/$keyId",
  }).lazy(() => import("./key.tsx").then(({ Route }) => Route)),
] as const;
