export const DASHBOARD_PATH = "/dashboard/";

const LENGTH_MAX = 2_000;
/**
 * Matches only the characters that a URL can contain. Excludes spaces, control characters, and backslashes, which browsers read as slashes.
 */
const CHARACTERS = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/?%[\]]*$/;

/**
 * Returns the path to open after a sign-in: the requested page if it belongs to the dashboard, otherwise the first page. The result is sent
 * in `Location` and must never lead to another host, so the request is parsed as a browser would, including dot segments, and only its path
 * and query are used.
 */
export function returnPath(requested: unknown): string {
  if (typeof requested !== "string" || requested.length > LENGTH_MAX || !CHARACTERS.test(requested))
    return DASHBOARD_PATH;
  if (!requested.startsWith(DASHBOARD_PATH)) return DASHBOARD_PATH;
  const base = "http://dashboard.invalid";
  const url = URL.parse(requested, base);
  if (url === null || url.origin !== base || !url.pathname.startsWith(DASHBOARD_PATH)) return DASHBOARD_PATH;
  // Excludes sign-in endpoints, which are not pages and would only redirect the browser again.
  if (/^\/dashboard\/(?:auth|sign-in|session)(?:\/|$)/.test(url.pathname)) return DASHBOARD_PATH;
  return url.pathname + url.search;
}
