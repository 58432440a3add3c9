import type { Logger } from "pino";
import { parseNamedPolicy } from "../../core/policies/policy-id.ts";
import type { RedisEdgeOptions } from "../../edge/open.ts";
import { type Credentials, keepCredentials } from "../../sidecar/credentials.ts";
import { FOLLOWED_FILE, HTTP_URL } from "../accepts.ts";
import { UsageError } from "../command.ts";
import { followFile } from "../followed.ts";
import type { redisAddress } from "../stores.ts";
import { parseHttpUrl } from "../values.ts";

/** Options of a gate that obtains its Redis user from an api-server. */
export const credentialOptions = {
  "credentials-url": {
    type: "string",
    placeholder: "URL",
    help: "api-server that issues this gate's Redis user; --redis-url then has no user, and --policy is CLUSTER/NAMESPACE/NAME",
    env: "POSTERN_CREDENTIALS_URL",
    accepts: HTTP_URL,
  },
  "credentials-ca-file": {
    type: "string",
    placeholder: "PATH",
    help: "CA bundle (PEM) for --credentials-url (default: system CAs)",
    env: "POSTERN_CREDENTIALS_CA_FILE",
    accepts: FOLLOWED_FILE,
  },
  "token-file": {
    type: "string",
    placeholder: "PATH",
    help: "the pod's ServiceAccount token with the audience `postern`, for --credentials-url",
    default: "/var/run/secrets/postern/token",
    env: "POSTERN_TOKEN_FILE",
    accepts: FOLLOWED_FILE,
  },
} as const;

type CredentialOptions = Readonly<
  Record<"credentials-url" | "credentials-ca-file", string | undefined> &
    Record<"workspace" | "policy" | "token-file", string>
>;

/** Returns the credentials of the gate; `undefined` without --credentials-url. */
export function credentialsOf(options: CredentialOptions, logger: Logger): Credentials | undefined {
  const { "credentials-url": url, "credentials-ca-file": caFile, "token-file": tokenFile, workspace, policy } = options;
  if (url === undefined) return undefined;
  const named = parseNamedPolicy(policy);
  if (named === undefined)
    throw new UsageError("--credentials-url requires a --policy in the form CLUSTER/NAMESPACE/NAME");
  return keepCredentials({
    apiUrl: parseHttpUrl("credentials-url", url),
    ca: caFile === undefined ? undefined : followFile(caFile, { name: "credentials-ca-file", log: logger }),
    tokenFile,
    asked: { workspaceId: workspace, cluster: named.cluster, policy: named.name },
    logger,
  });
}

/** Returns the Redis options with the current user, so that each new connection authenticates as that user. */
export function addressWith(
  credentials: Credentials | undefined,
  { url, eventsUrl, tls }: ReturnType<typeof redisAddress>,
  note: (error: Error) => void,
): Pick<RedisEdgeOptions, "url" | "eventsUrl" | "tls" | "reportsAreOwn" | "onError"> {
  if (credentials === undefined) return { url, eventsUrl, tls, onError: note };
  const withUser = (address: RedisEdgeOptions["url"]) => (): string => {
    const signedIn = new URL(typeof address === "string" ? address : address());
    signedIn.username = credentials.current?.username ?? NOT_YET;
    signedIn.password = credentials.current?.password ?? NOT_YET;
    return signedIn.href;
  };
  const onError = (error: Error): void => {
    // Logs errors only while there is a Redis user. Without one, Redis rejects the connections as intended.
    if (credentials.current !== undefined) note(error);
    if (/WRONGPASS|NOAUTH/.test(error.message)) credentials.refused();
  };
  const events = eventsUrl === undefined ? undefined : withUser(eventsUrl);
  return { url: withUser(url), eventsUrl: events, tls, reportsAreOwn: true, onError };
}

/**
 * User name for connections before the gate has a Redis user. Redis rejects it, so the connection is retried. Without a user name, Redis
 * would use the default user, which may have all permissions.
 */
const NOT_YET = "postern-no-user-yet";
