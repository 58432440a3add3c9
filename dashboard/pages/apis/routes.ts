import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../root-route.ts";

interface Search {
  /** Part of a name or id. */
  readonly search?: string;
}

export const apisRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/apis",
    validateSearch: ({ search }: Record<string, unknown>): Search =>
      typeof search === "string" && search !== "" ? { search } : {},
  }).lazy(() => import("./list.tsx").then(({ Route }) => Route)),
] as const;
