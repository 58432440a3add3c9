import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../root-route.ts";

interface Search {
  /** Part of the external id. */
  readonly search?: string;
  /** Id of the identity whose details are open. */
  readonly identity?: string;
}

const textIn = (value: unknown): value is string => typeof value === "string" && value !== "";

export const identitiesRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/identities",
    validateSearch: ({ search, identity }: Record<string, unknown>): Search => ({
      ...(textIn(search) ? { search } : {}),
      ...(textIn(identity) ? { identity } : {}),
    }),
  }).lazy(() => import("./list.tsx").then(({ Route }) => Route)),
] as const;
