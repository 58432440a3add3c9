import { NO_ROLES, type RolesOfGroups } from "../../core/sessions/assignments.ts";
import { DEFAULT_SESSION_TIMES, type SessionTimes } from "../../core/sessions/session-end.ts";
import type { Deps } from "../deps.ts";
import type { PeopleDeps } from "../domain/deps.ts";
import type { ErrorSender } from "../plugins/errors.ts";
import type { SessionRules } from "../sessions/signed-in.ts";
import type { ProviderSettings } from "./provider.ts";
import type { SignInLimits, SignInLimitsOptions } from "./sign-in-limits.ts";
import type { FailedSignIns } from "./sign-in-log.ts";

/** Configured sign-in methods of the dashboard. */
export interface SignInSettings {
  /** Address of the dashboard, as browsers see it. Default: only localhost, or this server's own TLS. */
  readonly url?: string | undefined;
  readonly times?: SessionTimes;
  /** Rate limits of sign-in attempts. */
  readonly bounds?: SignInLimitsOptions;
  /** OpenID provider. It requires `url`, from which the redirect URL is made. Default: no provider, so people sign in only with links. */
  readonly provider?: Omit<ProviderSettings, "redirectUri"> | undefined;
  /** Returns the roles of the provider's groups. Default: groups have no roles. */
  readonly rolesOfGroups?: RolesOfGroups | undefined;
}

export const sessionRulesOf = (
  { url, times = DEFAULT_SESSION_TIMES, rolesOfGroups = NO_ROLES }: SignInSettings,
  { isTls }: { readonly isTls: boolean },
): SessionRules => ({ times, address: { url, isTls }, rolesOfGroups });

/** Returns the dependencies of the functions that manage the sessions of people. */
export const peopleDepsOf = ({
  times = DEFAULT_SESSION_TIMES,
  rolesOfGroups = NO_ROLES,
}: SignInSettings): Pick<PeopleDeps, "sessionIdleMs" | "rolesOfGroups"> => ({
  sessionIdleMs: times.idleMs,
  rolesOfGroups,
});

/** Returns the provider's settings with the redirect URI. Throws an Error if there is a provider without `url`. */
export function providerOf({ url, provider }: SignInSettings): ProviderSettings | undefined {
  if (provider === undefined) return undefined;
  if (url === undefined) throw new Error("an OpenID provider needs the address of the dashboard");
  return { ...provider, redirectUri: `${url}/dashboard/auth/callback` };
}

/** Dependencies that all sign-in methods share. */
export interface SignInDeps {
  readonly deps: Deps;
  readonly rules: SessionRules;
  readonly bounds: SignInLimits;
  readonly failed: FailedSignIns;
  readonly sendError: ErrorSender;
}
