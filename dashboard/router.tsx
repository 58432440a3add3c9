import { createRootRoute, createRoute, createRouter, Navigate, retainSearchParams } from "@tanstack/react-router";
import { readAuditSearch } from "./pages/audit/search.ts";
import { readFilters } from "./pages/keys/filters.ts";
import { readRequestsSearch } from "./pages/requests/search.ts";
import { readSearch } from "./pages/root-keys/search.ts";
import { choiceIn, textsIn } from "./search-params.ts";
import { ErrorPage, NoPage, PageLoading } from "./shell/fallback-pages.tsx";
import { Shell } from "./shell/shell.tsx";
import { PRESET_NAMES } from "./usage/buckets.ts";
import { readUsageSearch } from "./usage/search.ts";

/* Routes of the pages with their search parameters. A page is loaded when it is first opened. */

/** Search parameters that every URL may have. */
interface RootSearch {
  /** Id of the workspace that the page shows. It makes a shared link open the same workspace. */
  readonly workspace?: string;
  /** Reason why the sign-in failed; see `shell/sign-in.tsx`. */
  readonly error?: string;
  /** Present after a sign-out. */
  readonly "signed-out"?: "";
}

const rootRoute = createRootRoute({
  component: Shell,
  notFoundComponent: NoPage,
  errorComponent: ErrorPage,
  validateSearch: (search: Record<string, unknown>): RootSearch => ({
    ...textsIn(search, "workspace", "error"),
    ...("signed-out" in search ? { "signed-out": "" } : {}),
  }),
  search: { middlewares: [retainSearchParams(["workspace"])] },
});

const getParentRoute = () => rootRoute;

type Search = Record<string, unknown>;

/** Reads the search parameter `search` of a list: a part of a name or an id. */
const listSearch = (search: Search) => textsIn(search, "search");

/** Reads the search parameter `create` of a page: the dialog to open. See components/use-create.ts. */
const createOf = <What extends string>(search: Search, ...whats: readonly What[]) => choiceIn(search, "create", whats);

/** Adds the time range of the charts. */
const namespaceSearch = (search: Search) => ({ ...listSearch(search), ...choiceIn(search, "range", PRESET_NAMES) });

const ID = /^[A-Za-z0-9_.-]{3,128}$/;

interface ExplainSearch {
  readonly requestId?: string;
  readonly keyId?: string;
  readonly policyId?: string;
  /** Time of the request, Unix ms. The page searches the day of this time. */
  readonly at?: number;
}

/** Returns the ids that `/explain` shows. The URL must not contain a key or its hash, because histories and logs keep URLs. */
const explainSearch = (search: Search): ExplainSearch => ({
  ...Object.fromEntries(
    ["requestId", "keyId", "policyId"].flatMap((name) => {
      const value = search[name];
      return typeof value === "string" && ID.test(value) ? [[name, value]] : [];
    }),
  ),
  ...(Number.isSafeInteger(search.at) ? { at: search.at as number } : {}),
});

const routes = [
  createRoute({ getParentRoute, path: "/" }).lazy(() => import("./pages/home/home.tsx").then(({ Route }) => Route)),
  // Route of sign-in links, for people who are already signed in. For everyone else, the shell shows the sign-in page on every route.
  createRoute({ getParentRoute, path: "/sign-in", component: () => <Navigate to="/" replace /> }),
  createRoute({
    getParentRoute,
    path: "/root-keys",
    validateSearch: (search: Search) => ({ ...readSearch(search), ...createOf(search, "root-key") }),
  }).lazy(() => import("./pages/root-keys/list.tsx").then(({ Route }) => Route)),
  createRoute({
    getParentRoute,
    path: "/apis",
    validateSearch: (search: Search) => ({ ...listSearch(search), ...createOf(search, "api") }),
  }).lazy(() => import("./pages/apis/list.tsx").then(({ Route }) => Route)),
  createRoute({ getParentRoute, path: "/apis/$apiId" }).lazy(() =>
    import("./pages/apis/api.tsx").then(({ Route }) => Route),
  ),
  createRoute({
    getParentRoute,
    path: "/keys",
    validateSearch: (search: Search) => ({ ...readFilters(search), ...createOf(search, "key") }),
  }).lazy(() => import("./pages/keys/list.tsx").then(({ Route }) => Route)),
  createRoute({ getParentRoute, path: "/keys/$keyId" }).lazy(() =>
    import("./pages/keys/key.tsx").then(({ Route }) => Route),
  ),
  createRoute({
    getParentRoute,
    path: "/identities",
    validateSearch: (search: Search) => ({ ...listSearch(search), ...createOf(search, "identity") }),
  }).lazy(() => import("./pages/identities/list.tsx").then(({ Route }) => Route)),
  createRoute({ getParentRoute, path: "/identities/$identityId" }).lazy(() =>
    import("./pages/identities/identity.tsx").then(({ Route }) => Route),
  ),
  createRoute({ getParentRoute, path: "/policies", validateSearch: listSearch }).lazy(() =>
    import("./pages/policies/list.tsx").then(({ Route }) => Route),
  ),
  createRoute({ getParentRoute, path: "/policies/$policyId" }).lazy(() =>
    import("./pages/policies/details.tsx").then(({ Route }) => Route),
  ),
  createRoute({ getParentRoute, path: "/explain", validateSearch: explainSearch }).lazy(() =>
    import("./pages/explain/explain.tsx").then(({ Route }) => Route),
  ),
  createRoute({ getParentRoute, path: "/audit", validateSearch: (search: Search) => readAuditSearch(search) }).lazy(
    () => import("./pages/audit/list.tsx").then(({ Route }) => Route),
  ),
  createRoute({ getParentRoute, path: "/installation" }).lazy(() =>
    import("./pages/installation/installation.tsx").then(({ Route }) => Route),
  ),
  createRoute({
    getParentRoute,
    path: "/people",
    // `person` identifies the person whose details are open, by the id of one of their sessions.
    validateSearch: (search: Search) => ({
      ...textsIn(search, "search", "person"),
      ...createOf(search, "sign-in-link"),
    }),
  }).lazy(() => import("./pages/people/list.tsx").then(({ Route }) => Route)),
  createRoute({ getParentRoute, path: "/settings" }).lazy(() =>
    import("./pages/settings/settings.tsx").then(({ Route }) => Route),
  ),
  createRoute({
    getParentRoute,
    path: "/workspaces",
    validateSearch: (search: Search) => ({ ...listSearch(search), ...createOf(search, "workspace") }),
  }).lazy(() => import("./pages/settings/workspaces.tsx").then(({ Route }) => Route)),
  createRoute({
    getParentRoute,
    path: "/permissions",
    // `search` filters the permissions, `roles` the roles.
    validateSearch: (search: Search) => ({
      ...textsIn(search, "search", "roles"),
      ...createOf(search, "role", "permission"),
    }),
  }).lazy(() => import("./pages/permissions/page.tsx").then(({ Route }) => Route)),
  createRoute({
    getParentRoute,
    path: "/ratelimits",
    validateSearch: (search: Search) => ({ ...listSearch(search), ...createOf(search, "namespace") }),
  }).lazy(() => import("./pages/ratelimits/list.tsx").then(({ Route }) => Route)),
  createRoute({ getParentRoute, path: "/ratelimits/$namespaceId", validateSearch: namespaceSearch }).lazy(() =>
    import("./pages/ratelimits/namespace.tsx").then(({ Route }) => Route),
  ),
  createRoute({ getParentRoute, path: "/usage", validateSearch: readUsageSearch }).lazy(() =>
    import("./pages/usage/overview.tsx").then(({ Route }) => Route),
  ),
  createRoute({ getParentRoute, path: "/requests", validateSearch: readRequestsSearch }).lazy(() =>
    import("./pages/requests/list.tsx").then(({ Route }) => Route),
  ),
  createRoute({ getParentRoute, path: "/usage/sql" }).lazy(() =>
    import("./pages/usage/sql/sql-page.tsx").then(({ Route }) => Route),
  ),
] as const;

const routeTree = rootRoute.addChildren(routes);

export const createDashboardRouter = () =>
  createRouter({
    routeTree,
    basepath: "/dashboard",
    // Anyone may have written the URL, so a page gets only the search parameters that its route has validated.
    search: { strict: true },
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
