import { ApiError, UNREACHABLE } from "./api-error.ts";
import { DASHBOARD_HEADERS, refusalOf } from "./client.ts";

/* Sign-in and sign-out. These endpoints are not part of the API because they set cookies. */

export interface SignInOptions {
  /** Reason why nobody can sign in at this URL; `null` if sign-in works. */
  readonly problem: string | null;
  /** Host of the OpenID provider; `null` if none is configured. */
  readonly provider: string | null;
}

export const readSignInOptions = (signal: AbortSignal): Promise<SignInOptions> => ask("options", { signal });

/** Signs in with the token of a sign-in link. Throws `ApiError` if the link was used before or has expired. */
export const signInByLink = (token: string): Promise<unknown> => ask("link", postOf({ token }));

export const signOut = (everywhere: boolean): Promise<unknown> => ask("sign-out", postOf({ everywhere }));

const postOf = (body: object): RequestInit => ({ method: "POST", body: JSON.stringify(body) });

async function ask<T>(path: string, init: RequestInit): Promise<T> {
  const headers = { ...DASHBOARD_HEADERS, "Content-Type": "application/json" };
  let response: Response;
  try {
    response = await fetch(`/dashboard/auth/${path}`, { ...init, headers });
  } catch (cause) {
    throw new ApiError({ status: 0, kind: UNREACHABLE, detail: "The server did not respond.", cause });
  }
  const body = await response.json().catch(() => undefined);
  if (!response.ok) throw refusalOf(response, body);
  return (body as { data: T }).data;
}

/** Returns the URL that starts the sign-in at the OpenID provider. After sign-in the browser returns to `to`, a path of the dashboard. */
export const startUrl = (to: string): string => `/dashboard/auth/start?${new URLSearchParams({ to })}`;
