import { DEFAULT_SESSION_TIMES, type SessionTimes } from "../../core/sessions/session-end.ts";
import type { SessionRules } from "../sessions/signed-in.ts";
import type { ProviderSettings } from "./provider.ts";
import type { RolesOfGroups } from "./roles-file.ts";
import type { SignInBoundsOptions } from "./sign-in-bounds.ts";

/** How people sign in to the dashboard, as it was configured. */
export interface SignInSettings {
  /** Where the dashboard is, as browsers see it; left out: only on this machine, or by this server's own TLS. */
  readonly url?: string | undefined;
  readonly times?: SessionTimes;
  /** What tries to sign in may cost. */
  readonly bounds?: SignInBoundsOptions;
  /** Left out: people sign in with links alone. It needs `url`, because the provider has to know where browsers come back. */
  readonly provider?: Omit<ProviderSettings, "redirectUri"> | undefined;
  /** What the provider's groups are worth; nothing when left out. */
  readonly rolesOfGroups?: RolesOfGroups | undefined;
}

export const sessionRulesOf = (
  { url, times = DEFAULT_SESSION_TIMES, rolesOfGroups = () => [] }: SignInSettings,
  { isTls }: { readonly isTls: boolean },
): SessionRules => ({ times, address: { url, isTls }, rolesOfGroups });

/** Throws an Error when there is a provider and no address. */
export function providerOf({ url, provider }: SignInSettings): ProviderSettings | undefined {
  if (provider === undefined) return undefined;
  if (url === undefined) throw new Error("an OpenID provider needs the address of the dashboard");
  return { ...provider, redirectUri: `${url}/dashboard/auth/callback` };
}
