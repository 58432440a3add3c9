import { createRoute } from "@tanstack/react-router";
import { textsIn } from "../../components/address-text.ts";
import { rootRoute } from "../../root-route.ts";

interface Search {
  /** Part of a name or id. */
  readonly search?: string;
}

export const apisRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/apis",
    validateSearch: (search: Record<string, unknown>): Search => textsIn(search, "search"),
  }).lazy(() => import("./list.tsx").then(({ Route }) => Route)),
] as const;
