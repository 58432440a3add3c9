import { ApiError, UNREACHABLE } from "./api-error.ts";
import { DASHBOARD_HEADERS, refusalOf } from "./client.ts";

/* Signing in and out: what is beside the API, because it sets cookies. */

export interface SignInOptions {
  /** Why nobody can sign in at this address; null when it is possible. */
  readonly problem: string | null;
  /** The host of the OpenID provider; null without one. */
  readonly provider: string | null;
}

export const readSignInOptions = (signal: AbortSignal): Promise<SignInOptions> => ask("options", { signal });

/** Throws `ApiError` when the link was used or has expired. */
export const signInByLink = (token: string): Promise<unknown> => ask("link", postOf({ token }));

export const signOut = (everywhere: boolean): Promise<unknown> => ask("sign-out", postOf({ everywhere }));

const postOf = (body: object): RequestInit => ({ method: "POST", body: JSON.stringify(body) });

async function ask<T>(path: string, init: RequestInit): Promise<T> {
  const headers = { ...DASHBOARD_HEADERS, "Content-Type": "application/json" };
  let response: Response;
  try {
    response = await fetch(`/dashboard/auth/${path}`, { ...init, headers });
  } catch (cause) {
    throw new ApiError({ status: 0, kind: UNREACHABLE, detail: "The server did not answer.", cause });
  }
  const body = await response.json().catch(() => undefined);
  if (!response.ok) throw refusalOf(response, body);
  return (body as { data: T }).data;
}

/** Where the provider is asked who this is; it leads back to `to`, a path of the dashboard. */
export const startUrl = (to: string): string => `/dashboard/auth/start?${new URLSearchParams({ to })}`;
