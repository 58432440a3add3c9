import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../root-route.ts";

export const settingsRoutes = [
  createRoute({ getParentRoute: () => rootRoute, path: "/settings" }).lazy(() =>
    import("./settings.tsx").then(({ Route }) => Route),
  ),
] as const;
