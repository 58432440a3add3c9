export const DASHBOARD_PATH = "/dashboard/";

const LENGTH_MAX = 2_000;
/** Only what an address may have in it: no space, no control character, and no backslash, which browsers read as a slash. */
const CHARACTERS = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/?%[\]]*$/;

/**
 * Where to go after a sign-in: the page that was wanted, if it is one of the dashboard, else the first page. Whatever this returns is put into `Location`, so
 * it must never lead to another host: it is read as a browser reads it, dot segments included, and only the path and the query are kept.
 */
export function returnPath(wanted: unknown): string {
  if (typeof wanted !== "string" || wanted.length > LENGTH_MAX || !CHARACTERS.test(wanted)) return DASHBOARD_PATH;
  if (!wanted.startsWith(DASHBOARD_PATH)) return DASHBOARD_PATH;
  const base = "http://dashboard.invalid";
  const url = URL.parse(wanted, base);
  if (url === null || url.origin !== base || !url.pathname.startsWith(DASHBOARD_PATH)) return DASHBOARD_PATH;
  // What signs people in is no page, and would only send the browser on again.
  if (/^\/dashboard\/(?:auth|sign-in|session)(?:\/|$)/.test(url.pathname)) return DASHBOARD_PATH;
  return url.pathname + url.search;
}
