import { createRoute, Navigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { rootRoute } from "../../root-route.ts";

/**
 * Route of sign-in links. The shell shows the sign-in to a person who is not signed in, as on every route; this page is for a person who
 * is.
 */
export const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sign-in",
  component: (): ReactNode => <Navigate to="/" replace />,
});
