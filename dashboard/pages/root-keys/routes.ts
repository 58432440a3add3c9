import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../root-route.ts";
import { readSearch } from "./search.ts";

export const rootKeysRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/root-keys",
    validateSearch: readSearch,
  }).lazy(() => import("./list.tsx").then(({ Route }) => Route)),
] as const;
