import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

/* A real OpenID provider that runs in this process and signs users in without showing a page. */

export interface Account {
  readonly sub: string;
  readonly claims: Readonly<Record<string, unknown>>;
}

export interface IdentityProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** User who signs in, or "refuses" for a user who cancels. */
  person: Account | "refuses";
  /** Lifetime of an authorization code in seconds. */
  codeLivesS: number;
  /** Follows an authorization URL as a browser does and returns the redirect URL. */
  follow(url: string): Promise<URL>;
  close(): Promise<void>;
}

export interface IdentityProviderOptions {
  readonly redirectUri: string;
  /** Where the groups claim is returned: in the ID token, or only by the userinfo endpoint. */
  readonly groupsIn?: "idToken" | "userinfo";
  /** Host name of the provider. `localhost` and `127.0.0.1` are different sites to a browser. */
  readonly host?: "127.0.0.1" | "localhost";
  readonly method?: "client_secret_basic" | "client_secret_post" | "none";
}

export async function startIdentityProvider({
  redirectUri,
  groupsIn = "idToken",
  host = "127.0.0.1",
  method = "client_secret_basic",
}: IdentityProviderOptions): Promise<IdentityProvider> {
  const server = createServer((request, response) => handle(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://${host}:${(server.address() as AddressInfo).port}`;
  const [clientId, clientSecret] = ["postern", "c".repeat(40)];
  const state: { person: IdentityProvider["person"]; codeLivesS: number } = {
    person: { sub: "ada", claims: {} },
    codeLivesS: 60,
  };
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: clientId,
        ...(method === "none" ? {} : { client_secret: clientSecret }),
        redirect_uris: [redirectUri],
        grant_types: ["authorization_code"],
        response_types: ["code"],
        token_endpoint_auth_method: method,
      },
    ],
    claims: { openid: ["sub"], profile: ["name", "preferred_username", "groups"], email: ["email"] },
    // `true` moves claims granted by a scope from the ID token to the userinfo endpoint.
    conformIdTokenClaims: groupsIn === "userinfo",
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    clientAuthMethods: [method],
    cookies: { keys: ["test"] },
    ttl: {
      AuthorizationCode: () => state.codeLivesS,
      Session: 600,
      Grant: 600,
      Interaction: 600,
      AccessToken: 600,
      IdToken: 600,
    },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, sub) => ({
      accountId: sub,
      claims: () => ({ sub, ...(state.person === "refuses" ? {} : state.person.claims) }),
    }),
    async loadExistingGrant(context) {
      const { client, session } = context.oidc;
      const grant = new context.oidc.provider.Grant({
        clientId: client?.clientId ?? "",
        accountId: session?.accountId ?? "",
      });
      grant.addOIDCScope("openid profile email");
      await grant.save();
      return grant;
    },
  });
  const serve = provider.callback();
  async function handle(...[request, response]: Parameters<ReturnType<typeof provider.callback>>): Promise<void> {
    if (!request.url?.startsWith("/interaction/")) {
      await serve(request, response);
      return;
    }
    const { person } = state;
    const result =
      person === "refuses"
        ? { error: "access_denied", error_description: "The person said no <script>alert(1)</script>." }
        : { login: { accountId: person.sub } };
    await provider.interactionFinished(request, response, result);
  }

  async function follow(url: string): Promise<URL> {
    const cookies = new Map<string, string>();
    let at = new URL(url);
    for (let hops = 0; hops < 10; hops++) {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
      const response = await fetch(at, { redirect: "manual", headers: { cookie } });
      for (const line of response.headers.getSetCookie()) {
        const [pair = ""] = line.split(";", 1);
        const [name = "", value = ""] = pair.split("=", 2);
        cookies.set(name, value);
      }
      const location = response.headers.get("location");
      if (location === null) throw new Error(`${at.href} answered ${response.status}: ${await response.text()}`);
      at = new URL(location, at);
      if (at.origin !== issuer) return at;
    }
    throw new Error("the provider sends the browser in circles");
  }

  return {
    issuer,
    clientId,
    clientSecret,
    follow,
    get person() {
      return state.person;
    },
    set person(person) {
      state.person = person;
    },
    get codeLivesS() {
      return state.codeLivesS;
    },
    set codeLivesS(seconds) {
      state.codeLivesS = seconds;
    },
    async close() {
      server.closeAllConnections();
      if (!server.listening) return;
      server.close();
      await once(server, "close");
    },
  };
}
