import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../root-route.ts";

interface Search {
  readonly requestId?: string;
  readonly keyId?: string;
  /** Explains a request at the gate of this policy. */
  readonly policyId?: string;
}

const ID = /^[A-Za-z0-9_.-]{3,128}$/;
const NAMES = ["requestId", "keyId", "policyId"] as const;

export const explainRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/explain",
    // Never a key or its hash: an address is kept in histories and logs.
    validateSearch: (search: Record<string, unknown>): Search =>
      Object.fromEntries(
        NAMES.flatMap((name) => {
          const value = search[name];
          return typeof value === "string" && ID.test(value) ? [[name, value]] : [];
        }),
      ),
  }).lazy(() => import("./explain.tsx").then(({ Route }) => Route)),
] as const;
