import { createRoute, redirect } from "@tanstack/react-router";
import { rootRoute } from "./root-route.ts";
import { NAVIGATION } from "./shell/navigation.ts";

/** `/dashboard/` redirects to the first page of the navigation. */
export const startRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: NAVIGATION[0]?.entries[0]?.to ?? "/identities", replace: true });
  },
});
