import { createRouter } from "@tanstack/react-router";
import { apisRoutes } from "./pages/apis/routes.ts";
import { auditRoutes } from "./pages/audit/routes.ts";
import { explainRoutes } from "./pages/explain/routes.ts";
import { identitiesRoutes } from "./pages/identities/routes.ts";
import { installationRoutes } from "./pages/installation/routes.ts";
import { keysRoutes } from "./pages/keys/routes.ts";
import { permissionsRoutes } from "./pages/permissions/routes.ts";
import { policiesRoutes } from "./pages/policies/routes.ts";
import { ratelimitsRoutes } from "./pages/ratelimits/routes.ts";
import { rootKeysRoutes } from "./pages/root-keys/routes.ts";
import { settingsRoutes } from "./pages/settings/routes.ts";
import { signInRoute } from "./pages/sign-in/route.tsx";
import { usageRoutes } from "./pages/usage/routes.ts";
import { rootRoute } from "./root-route.ts";
import { ErrorPage } from "./shell/error-page.tsx";
import { PageLoading } from "./shell/page-loading.tsx";
import { startRoute } from "./start-route.ts";

/** One line per page, which names the route; the page itself is loaded when it is first opened. */
const routeTree = rootRoute.addChildren([
  startRoute,
  signInRoute,
  ...rootKeysRoutes,
  ...apisRoutes,
  ...keysRoutes,
  ...identitiesRoutes,
  ...policiesRoutes,
  ...explainRoutes,
  ...auditRoutes,
  ...installationRoutes,
  ...settingsRoutes,
  ...permissionsRoutes,
  ...ratelimitsRoutes,
  ...usageRoutes,
]);

export const createDashboardRouter = () =>
  createRouter({
    routeTree,
    basepath: "/dashboard",
    defaultPreload: "intent",
    defaultErrorComponent: ErrorPage,
    defaultPendingComponent: PageLoading,
    scrollRestoration: true,
  });

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createDashboardRouter>;
  }
}
