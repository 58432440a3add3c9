import { v1Procedures } from "../v1/index.ts";

/* Builds the HTTP request for a v1 or v2 call. The members of the call become a body or a query string. */

/** Whether a procedure name in the test tables, such as `v1/apis.getApi`, belongs to v1. */
export const isOfV1 = (name: string): boolean => name.startsWith("v1/");

export interface HttpRequest {
  readonly method: "GET" | "POST";
  readonly url: string;
  /** Body of the request; `undefined` for a GET request. */
  readonly payload: string | undefined;
}

const METHODS = new Map(v1Procedures.map(({ path, method }) => [path, method]));

/** Returns the request of a call; an unknown v1 procedure is called by POST. A string body is sent unchanged. */
export function requestOf(name: string, body: unknown): HttpRequest {
  if (!isOfV1(name)) return { method: "POST", url: `/v2/${name}`, payload: asText(body) };
  const path = name.slice("v1/".length);
  if (METHODS.get(path) !== "GET") return { method: "POST", url: `/v1/${path}`, payload: asText(body) };
  const { url, rest } = fillParameters(`/v1/${path}`, body as Record<string, unknown>);
  const query = toQuery(rest);
  return { method: "GET", url: query === "" ? url : `${url}?${query}`, payload: undefined };
}

const asText = (body: unknown): string => (typeof body === "string" ? body : JSON.stringify(body));

/** Fills path parameters from the members: `/v1/apis/:apiId/keys` gets `apiId`. */
function fillParameters(template: string, members: Record<string, unknown>) {
  const rest = { ...members };
  const url = template.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = rest[name];
    delete rest[name];
    return encodeURIComponent(String(value));
  });
  return { url, rest };
}

/** Formats members as a query string; a list becomes a repeated parameter. */
export function toQuery(members: Readonly<Record<string, unknown>>): string {
  const pairs = Object.entries(members).flatMap(([name, value]) => [value].flat().map((one) => [name, String(one)]));
  return new URLSearchParams(pairs).toString();
}
