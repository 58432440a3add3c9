import type { PersonRole } from "../../core/permissions/person-roles.ts";
import type { Administrator } from "../domain/administration/administrator.ts";
import { makeSignInLink } from "../domain/administration/sign-in-links.ts";
import type { Reply, TestApp } from "./app.ts";

/* Dashboard users of an API under test: sign-in and browser requests. */

/** Local origin. Browsers accept Secure cookies from it without TLS. */
export const ORIGIN = "http://127.0.0.1:8080";

/** Headers that a browser sends with a call from the dashboard page. */
export const OWN_PAGE: Readonly<Record<string, string>> = {
  host: "127.0.0.1:8080",
  origin: ORIGIN,
  "sec-fetch-site": "same-origin",
  "postern-dashboard": "1",
};

export interface LinkOptions {
  readonly name?: string;
  readonly role?: PersonRole;
  /** Workspace id. Default: all workspaces. */
  readonly workspaceId?: string;
}

/** Creates a sign-in link as `postern dashboard link` does and returns its token. */
export async function makeLink(t: TestApp, options: LinkOptions = {}): Promise<string> {
  const { name = "Ada", role = "admin", workspaceId } = options;
  const administrator: Administrator = { ...t.deps, actor: { type: "cli", id: "cli", name: "root@host" } };
  const logWorkspaceId = workspaceId ?? t.workspace.id;
  const link = await makeSignInLink(administrator, { name, role, workspaceId, logWorkspaceId });
  return link.token;
}

/** Redeems a sign-in link as the sign-in page does. */
export async function followLink(
  t: TestApp,
  token: string,
  headers: Readonly<Record<string, string>> = OWN_PAGE,
): Promise<Reply> {
  return post(t, "/dashboard/auth/link", { token }, headers);
}

export async function post(
  t: TestApp,
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string | undefined>>,
): Promise<Reply> {
  const sent = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
  const response = await t.app.inject({
    method: "POST",
    url,
    headers: { "content-type": "application/json", ...sent },
    payload: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.statusCode, headers: response.headers, body: response.json() };
}

/** Returns the value of a cookie that the response sets, or `undefined` if it sets none or removes it. */
export function cookieOf(reply: Pick<Reply, "headers">, name = "__Host-postern"): string | undefined {
  const lines = [reply.headers["set-cookie"] ?? []].flat() as string[];
  const line = lines.find((one) => one.startsWith(`${name}=`));
  const value = line?.split(";", 1)[0]?.slice(name.length + 1);
  return value === "" ? undefined : value;
}

export interface PersonAtPage {
  readonly token: string;
  /** Sends a call as the dashboard page does. */
  call(path: string, body?: unknown, headers?: Readonly<Record<string, string | undefined>>): Promise<Reply>;
  signOut(everywhere?: boolean): Promise<Reply>;
}

/** Returns a browser with this session. */
export function browserWith(t: TestApp, token: string): PersonAtPage {
  const cookie = `theme=dark; __Host-postern=${token}; other=1`;
  return {
    token,
    call: (path, body = {}, headers = {}) => post(t, `/v2/${path}`, body, { ...OWN_PAGE, cookie, ...headers }),
    signOut: (everywhere = false) => post(t, "/dashboard/auth/sign-out", { everywhere }, { ...OWN_PAGE, cookie }),
  };
}

/** Signs a user in with a link. */
export async function signIn(t: TestApp, options: LinkOptions = {}): Promise<PersonAtPage> {
  const reply = await followLink(t, await makeLink(t, options));
  const token = cookieOf(reply);
  if (token === undefined) throw new Error(`no session: ${JSON.stringify(reply.body)}`);
  return browserWith(t, token);
}
