import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../root-route.ts";

export const installationRoutes = [
  createRoute({ getParentRoute: () => rootRoute, path: "/installation" }).lazy(() =>
    import("./installation.tsx").then(({ Route }) => Route),
  ),
] as const;
