import type { Logger } from "pino";
import { followRoles, parseRolesFile } from "../api-server/sign-in/roles-file.ts";
import type { SignInSettings } from "../api-server/sign-in/settings.ts";
import { duration, FOLLOWED_FILE, text } from "./accepts.ts";
import { type Accepts, type OptionRow, UsageError } from "./command.ts";
import { followed, followFile, withFile } from "./followed.ts";
import { dashboardUrl } from "./options.ts";
import { parseDashboardUrl, parseDurationOption, parseProviderUrl } from "./values.ts";

/* Options of the sign-in to the dashboard. */

const ISSUER: Accepts = {
  ...text("URL", "https, or http for a loopback address"),
  check: (option, issuer) => void parseProviderUrl(option, issuer),
};
/** Lifetime of a session, up to 31 days. Longer access requires a root key. */
const SESSION = duration({ minMs: 60_000, maxMs: 44_640 * 60_000 });

const clientSecret = {
  type: "string",
  placeholder: "SECRET",
  help: "OpenID client secret; omit for a public client",
  env: "POSTERN_OIDC_CLIENT_SECRET",
  accepts: text("secret"),
} as const satisfies OptionRow;

export const signInOptions = {
  "dashboard-url": dashboardUrl,
  "oidc-issuer": {
    type: "string",
    placeholder: "URL",
    help: "OpenID provider for dashboard sign-in; requires --dashboard-url",
    env: "POSTERN_OIDC_ISSUER",
    accepts: ISSUER,
  },
  "oidc-client-id": {
    type: "string",
    placeholder: "ID",
    help: "OpenID client id; the redirect URI is /dashboard/auth/callback",
    env: "POSTERN_OIDC_CLIENT_ID",
    accepts: text("text"),
  },
  ...withFile("oidc-client-secret", clientSecret),
  "oidc-scopes": {
    type: "string",
    placeholder: "LIST",
    help: "OpenID scopes, separated by spaces",
    default: "openid profile email",
    env: "POSTERN_OIDC_SCOPES",
    accepts: text("words", "`openid` is among them"),
  },
  "oidc-groups-claim": {
    type: "string",
    placeholder: "NAME",
    help: "claim with the groups of a person",
    default: "groups",
    env: "POSTERN_OIDC_GROUPS_CLAIM",
    accepts: text("name"),
  },
  "dashboard-roles-file": {
    type: "string",
    placeholder: "PATH",
    help: "YAML file with the roles of groups, reloaded on change",
    env: "POSTERN_DASHBOARD_ROLES_FILE",
    accepts: FOLLOWED_FILE,
  },
  "session-idle-timeout": {
    type: "string",
    placeholder: "DURATION",
    help: "idle timeout of dashboard sessions",
    default: "2h",
    env: "POSTERN_SESSION_IDLE_TIMEOUT",
    accepts: SESSION,
  },
  "session-lifetime": {
    type: "string",
    placeholder: "DURATION",
    help: "maximum lifetime of dashboard sessions",
    default: "12h",
    env: "POSTERN_SESSION_LIFETIME",
    accepts: SESSION,
  },
} as const;

export type SignInValues = { readonly [K in keyof typeof signInOptions]: string | undefined };

/** Returns the sign-in configuration. Throws `UsageError` for conflicting options and for an invalid file. */
export function signInOf(options: SignInValues, log: Pick<Logger, "info" | "warn">): SignInSettings {
  const given = options["dashboard-url"];
  const url = given === undefined ? undefined : parseDashboardUrl("dashboard-url", given);
  const ms = (name: "session-idle-timeout" | "session-lifetime"): number =>
    parseDurationOption(name, options[name] ?? "", SESSION);
  const times = { idleMs: ms("session-idle-timeout"), maxMs: ms("session-lifetime") };
  return { url, times, provider: providerOf(options, url, log), rolesOfGroups: rolesOf(options, log) };
}

function providerOf(
  options: SignInValues,
  url: string | undefined,
  log: Pick<Logger, "info" | "warn">,
): SignInSettings["provider"] {
  const { "oidc-issuer": issuer, "oidc-client-id": clientId } = options;
  const secret = { value: options["oidc-client-secret"], file: options["oidc-client-secret-file"] };
  if (issuer === undefined) {
    const stray = [clientId, secret.value, secret.file].some((value) => value !== undefined && value !== "");
    if (stray) throw new UsageError("--oidc-client-id and --oidc-client-secret require --oidc-issuer");
    return undefined;
  }
  if (clientId === undefined) throw new UsageError("--oidc-issuer requires --oidc-client-id");
  if (url === undefined)
    throw new UsageError("--oidc-issuer requires --dashboard-url, because the provider redirects browsers to it");
  const scopes = options["oidc-scopes"] ?? "";
  if (!scopes.split(" ").includes("openid")) throw new UsageError("--oidc-scopes must contain openid");
  return {
    issuer: parseProviderUrl("oidc-issuer", issuer),
    clientId,
    clientSecret: followed({ name: "oidc-client-secret", ...secret, log }),
    scopes,
    groupsClaim: options["oidc-groups-claim"] ?? "",
  };
}

function rolesOf(options: SignInValues, log: Pick<Logger, "info" | "warn">): SignInSettings["rolesOfGroups"] {
  const file = options["dashboard-roles-file"];
  if (file === undefined) return undefined;
  let isStart = true;
  const accept = (text: string): string => {
    try {
      parseRolesFile(text);
      return text;
    } catch (error) {
      const message = `${file}: ${error instanceof Error ? error.message : String(error)}`;
      throw isStart ? new UsageError(`--dashboard-roles-file ${message}`) : new Error(message);
    }
  };
  const current = followFile(file, { name: "dashboard-roles-file", log, accept });
  isStart = false;
  return followRoles(current);
}
