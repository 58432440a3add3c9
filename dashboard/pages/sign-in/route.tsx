import { createRoute, Navigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { rootRoute } from "../../root-route.ts";

/** The address of sign-in links. The shell asks a person to sign in there, as it does everywhere; this is shown to one who has. */
export const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sign-in",
  component: (): ReactNode => <Navigate to="/" replace />,
});
