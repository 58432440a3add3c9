import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  type CustomFetch,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  None,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from "openid-client";
import type { PersonRef } from "../db/sessions.ts";

/*
 * Client of an OpenID provider. It uses the code flow with PKCE, state and nonce (OpenID Connect Core 1.0; RFC 9700). Every call has a
 * deadline. The provider's metadata is fetched once an hour, but not at startup, so that a server starts without the provider.
 */

export interface ProviderSettings {
  readonly issuer: string;
  readonly clientId: string;
  /** Returns the client secret; `undefined` for a public client. Called for each sign-in, because the secret may change. */
  readonly clientSecret?: (() => string) | undefined;
  readonly scopes: string;
  /** Name of the claim with the groups. */
  readonly groupsClaim: string;
  /** URL to which the provider redirects the browser. */
  readonly redirectUri: string;
}

export interface Begun {
  /** URL of the provider, for the browser. */
  readonly url: string;
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

/** The user, as the provider describes them. */
export interface Claimed extends PersonRef {
  readonly name: string;
  readonly email: string | null;
  readonly groups: readonly string[];
}

/** Thrown if the provider does not respond or its response is invalid. */
export class ProviderUnavailable extends Error {
  override name = "ProviderUnavailable";
}

/** Thrown if the provider rejects the sign-in, for example because the person declined. */
export class ProviderDenied extends Error {
  override name = "ProviderDenied";
}

const CALL_TIMEOUT_S = 5;
const KNOWN_FOR_MS = 3_600_000;
/** Time for which a failed discovery is cached, so that repeated sign-in attempts do not overload the provider. */
const FAILED_FOR_MS = 2_000;

/** Maximum size of one response from the provider. The claims of a person in thousands of groups take about 100 KB. */
const RESPONSE_BYTES_MAX = 1_048_576;
const GROUPS_MAX = 1_000;
const TEXT_LENGTH_MAX = 255;

export interface Provider {
  /** Starts a sign-in. Throws ProviderUnavailable. */
  begin(): Promise<Begun>;
  /**
   * Exchanges the callback parameters for the identity of the user. Throws ProviderUnavailable, ProviderDenied, or another error if the
   * provider's response is invalid.
   * @param query query string of the callback URL.
   */
  finish(query: string, flow: Omit<Begun, "url">): Promise<Claimed>;
}

export function createProvider(settings: ProviderSettings, nowMs: () => number = () => performance.now()): Provider {
  const { issuer, clientId, clientSecret, scopes, groupsClaim, redirectUri } = settings;
  const isInsecure = new URL(issuer).protocol === "http:";
  let known: { readonly metadata: Promise<Configuration>; readonly untilMs: number } | undefined;

  function discover(): Promise<Configuration> {
    const insecure = isInsecure ? { execute: [allowInsecureRequests] } : {};
    const options = { timeout: CALL_TIMEOUT_S, [customFetch]: fetchBounded, ...insecure };
    const metadata = discovery(new URL(issuer), clientId, undefined, None(), options);
    known = { metadata, untilMs: nowMs() + KNOWN_FOR_MS };
    metadata.catch(() => {
      known = { metadata, untilMs: nowMs() + FAILED_FOR_MS };
    });
    return metadata;
  }

  async function configuration(): Promise<Configuration> {
    const isFresh = known !== undefined && nowMs() < known.untilMs;
    try {
      return clientOf(await (isFresh && known !== undefined ? known.metadata : discover()));
    } catch (cause) {
      throw new ProviderUnavailable("the provider's metadata cannot be read", { cause });
    }
  }

  /** Creates a client for one sign-in, with the current secret. */
  function clientOf(metadata: Configuration): Configuration {
    const server = metadata.serverMetadata();
    // If a provider's metadata does not list its authentication methods, it supports `client_secret_basic` (OpenID Connect Discovery 1.0).
    const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    const withSecret = methods.includes("client_secret_basic") ? ClientSecretBasic : ClientSecretPost;
    const made = new Configuration(
      server,
      clientId,
      undefined,
      clientSecret === undefined ? None() : withSecret(clientSecret()),
    );
    made.timeout = CALL_TIMEOUT_S;
    made[customFetch] = fetchBounded;
    // Checks the signature even though the token comes directly from the provider, because a proxy in between may terminate TLS.
    enableNonRepudiationChecks(made);
    if (isInsecure) allowInsecureRequests(made);
    return made;
  }

  return {
    async begin() {
      const config = await configuration();
      const [state, nonce, codeVerifier] = [randomState(), randomNonce(), randomPKCECodeVerifier()];
      const url = buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: scopes,
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: "S256",
      });
      return { url: url.href, state, nonce, codeVerifier };
    },

    async finish(query, { state, nonce, codeVerifier }) {
      const config = await configuration();
      const cameBack = new URL(redirectUri);
      cameBack.search = query;
      try {
        const tokens = await authorizationCodeGrant(config, cameBack, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: codeVerifier,
          idTokenExpected: true,
        });
        const claims = tokens.claims();
        if (claims === undefined) throw new Error("the provider sent no ID token");
        // Some providers put groups into the ID token, others only into the userinfo response.
        const isMore = claims[groupsClaim] === undefined && config.serverMetadata().userinfo_endpoint !== undefined;
        const more = isMore ? await fetchUserInfo(config, tokens.access_token, claims.sub) : {};
        return toClaimed({ ...more, ...claims }, groupsClaim);
      } catch (error) {
        if (error instanceof AuthorizationResponseError) throw new ProviderDenied(error.error, { cause: error });
        if (isUnreachable(error)) throw new ProviderUnavailable("the provider does not answer", { cause: error });
        throw error;
      }
    },
  };
}

/**
 * A `fetch` that limits the size of responses: one of more than RESPONSE_BYTES_MAX fails, and its connection is closed. Without the limit,
 * a broken or malicious provider could fill the memory within the five-second timeout.
 */
const fetchBounded: CustomFetch = async (url, options) => {
  const response = await fetch(url, options as RequestInit);
  if (response.body === null) return response;
  let left = RESPONSE_BYTES_MAX;
  const bounded = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      left -= chunk.byteLength;
      if (left < 0) controller.error(new Error(`the response has more than ${RESPONSE_BYTES_MAX} bytes`));
      else controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(bounded), { status, statusText, headers });
};

/**
 * Returns whether an error means that the provider is unreachable. `fetch` throws a TypeError if it cannot connect; the library throws an
 * error with a code on timeout. A status of 500 or above means that the provider has failed or a proxy cannot reach it.
 */
function isUnreachable(error: unknown): boolean {
  const { code, status, cause } = error as { code?: string; status?: number; cause?: { status?: number } };
  if ((status ?? cause?.status ?? 0) >= 500) return true;
  return (error instanceof TypeError && error.message === "fetch failed") || code === "OAUTH_TIMEOUT";
}

function toClaimed(
  claims: Readonly<Record<string, unknown>> & { readonly iss: string; readonly sub: string },
  groupsClaim: string,
): Claimed {
  const { iss, name, preferred_username: username, email } = claims;
  const sub = plainText(claims.sub);
  // The length of a subject is limited by OpenID Connect Core 1.0.
  if (sub === undefined) throw new Error("the subject is not a string of at most 255 characters");
  const given = [name, username, email, sub].map(plainText).find((text) => text !== undefined);
  const groups = [claims[groupsClaim] ?? []].flat().map(plainText);
  return {
    issuer: iss,
    subject: sub,
    name: given ?? "unnamed",
    email: plainText(email) ?? null,
    groups: groups.filter((group) => group !== undefined).slice(0, GROUPS_MAX),
  };
}

/**
 * Returns the value if it is a string that can be stored and shown, otherwise `undefined`. A string that is too long is not truncated,
 * because that would make it a different name.
 */
function plainText(value: unknown): string | undefined {
  if (typeof value !== "string" || value.trim() === "" || value.length > TEXT_LENGTH_MAX) return undefined;
  return value.isWellFormed() && !/\p{Cc}/u.test(value) ? value : undefined;
}
