import { v1Procedures } from "../v1/index.ts";

/*
 * How a call of either generation is sent: what it holds becomes a body or a query.
 */

/** Whether a procedure's name in the tables of the tests, such as `v1/apis.getApi`, is one of v1. */
export const isOfV1 = (name: string): boolean => name.startsWith("v1/");

export interface HttpRequest {
  readonly method: "GET" | "POST";
  readonly url: string;
  /** undefined for a GET. */
  readonly payload: string | undefined;
}

const METHODS = new Map(v1Procedures.map(({ path, method }) => [path, method]));

/** Of an unknown procedure of v1 a POST. A body that is a text is sent unchanged. */
export function requestOf(name: string, body: unknown): HttpRequest {
  if (!isOfV1(name)) return { method: "POST", url: `/v2/${name}`, payload: asText(body) };
  const path = name.slice("v1/".length);
  if (METHODS.get(path) !== "GET") return { method: "POST", url: `/v1/${path}`, payload: asText(body) };
  const { url, rest } = fillParameters(`/v1/${path}`, body as Record<string, unknown>);
  const query = toQuery(rest);
  return { method: "GET", url: query === "" ? url : `${url}?${query}`, payload: undefined };
}

const asText = (body: unknown): string => (typeof body === "string" ? body : JSON.stringify(body));

/** `/v1/apis/:apiId/keys` gets its `apiId` from the members. */
function fillParameters(template: string, members: Record<string, unknown>) {
  const rest = { ...members };
  const url = template.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = rest[name];
    delete rest[name];
    return encodeURIComponent(String(value));
  });
  return { url, rest };
}

/** A list becomes a repeated parameter. */
export function toQuery(members: Readonly<Record<string, unknown>>): string {
  const pairs = Object.entries(members).flatMap(([name, value]) => [value].flat().map((one) => [name, String(one)]));
  return new URLSearchParams(pairs).toString();
}
