/*
 * Address of the dashboard, as browsers see it. It is configured, because a server behind a TLS-terminating proxy cannot detect its own
 * address. Without the setting, two kinds of addresses work: the host of a request that arrived over TLS, and localhost (`kubectl
 * port-forward`, `postern dev`), where browsers accept Secure cookies without TLS.
 */

export interface DashboardAddress {
  /** Configured URL, such as `https://postern.example.com`. */
  readonly url: string | undefined;
  /** Whether this server itself serves TLS. */
  readonly isTls: boolean;
}

const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i;
/** Matches a host name or address with an optional port. Any other value that a client sends as `Host` cannot be part of an origin. */
const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

/**
 * Returns the possible origins of the dashboard in a browser that sends this `Host`. Returns an empty list if a session would not be safe
 * under any origin.
 */
export function ownOrigins(host: string | undefined, { url, isTls }: DashboardAddress): readonly string[] {
  // The configured origin is accepted with any `Host`, because a proxy may send its own host.
  const configured = url === undefined ? [] : [new URL(url).origin];
  if (host === undefined || !HOST.test(host) || !(isTls || LOOPBACK.test(host))) return configured;
  const reached = URL.parse(`${isTls ? "https" : "http"}://${host}`);
  return reached === null ? configured : [...configured, reached.origin];
}

/** Error message for a sign-in at an address where sign-in is not possible. */
export const NO_ORIGIN =
  "Nobody can sign in over plain http, because anyone on the network path could steal the session. Use https, and set --dashboard-url to the address that browsers use; or open the dashboard at http://127.0.0.1, for example through kubectl port-forward.";

/** Browser headers that a page of another site cannot set. */
export interface FetchHeaders {
  readonly host?: string | undefined;
  readonly origin?: string | undefined;
  readonly "sec-fetch-site"?: string | string[] | undefined;
  readonly "postern-dashboard"?: string | string[] | undefined;
}

/**
 * Returns the reason for rejecting a request with a cookie that might not come from the dashboard itself; `undefined` if it does come from
 * the dashboard. A request must pass both the check of the header and that of the origin, although either would suffice: a form cannot send
 * the header, and a script of another origin can send it only after a preflight, which is never granted.
 */
export function foreignProblem(headers: FetchHeaders, address: DashboardAddress): string | undefined {
  if (headers["postern-dashboard"] !== "1") return "it lacks the header Postern-Dashboard: 1";
  if (headers.origin !== undefined) {
    if (ownOrigins(headers.host, address).includes(headers.origin)) return undefined;
    return "its Origin is not that of the dashboard (behind a proxy, set --dashboard-url to the address that browsers use)";
  }
  if (headers["sec-fetch-site"] === "same-origin") return undefined;
  return "it has no Origin, and Sec-Fetch-Site is not same-origin";
}
