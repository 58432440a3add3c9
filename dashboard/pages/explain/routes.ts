import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../root-route.ts";

interface Search {
  readonly requestId?: string;
  readonly keyId?: string;
  /** Id of the policy at whose gate the request is explained. */
  readonly policyId?: string;
}

const ID = /^[A-Za-z0-9_.-]{3,128}$/;
const NAMES = ["requestId", "keyId", "policyId"] as const;

export const explainRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/explain",
    // The address must not contain a key or its hash, because histories and logs keep addresses.
    validateSearch: (search: Record<string, unknown>): Search =>
      Object.fromEntries(
        NAMES.flatMap((name) => {
          const value = search[name];
          return typeof value === "string" && ID.test(value) ? [[name, value]] : [];
        }),
      ),
  }).lazy(() => import("./explain.tsx").then(({ Route }) => Route)),
] as const;
