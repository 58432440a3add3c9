import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../root-route.ts";
import { type AuditSearch, readAuditSearch } from "./search.ts";

export const auditRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/audit",
    validateSearch: (search: Record<string, unknown>): AuditSearch => readAuditSearch(search),
  }).lazy(() => import("./list.tsx").then(({ Route }) => Route)),
] as const;
