import { createRoute } from "@tanstack/react-router";
import { textsIn } from "../../components/address-text.ts";
import { rootRoute } from "../../root-route.ts";

interface Search {
  /** Part of the external id. */
  readonly search?: string;
  /** Id of the identity whose details are open. */
  readonly identity?: string;
}

export const identitiesRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/identities",
    validateSearch: (search: Record<string, unknown>): Search => textsIn(search, "search", "identity"),
  }).lazy(() => import("./list.tsx").then(({ Route }) => Route)),
] as const;
