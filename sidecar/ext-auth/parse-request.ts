import { isIP } from "node:net";
import { withoutPort } from "../../core/verification/ip-address.ts";
import type { ReceivedRequest } from "../decision/evaluate-head.ts";

/*
 * Reads the request to evaluate from the request that a gateway sends to the HTTP ext-auth endpoint. Gateways use one of three forms:
 *
 *   X-Original-Method, X-Original-URI        nginx, HAProxy and Apache, as configured in docs/gateways.md
 *   X-Forwarded-Method, X-Forwarded-Uri      Traefik's ForwardAuth, Caddy's forward_auth
 *   the request itself, below /authorize     Envoy's ext_authz over HTTP: PUT /authorize/orders/1 evaluates PUT /orders/1
 *
 * The host is the Host header; in the second form it is X-Forwarded-Host if present, because Traefik sends the endpoint's name as Host.
 * The client's address is the last entry of X-Forwarded-For, or in Envoy's form the value of X-Real-IP.
 *
 * A gateway also forwards most headers of its client, who could send these headers too. Therefore a request with more than one form, or
 * with a duplicate or missing header, is rejected.
 */

export const EXT_AUTH_PATH = "/authorize";

export interface ExtAuthRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly rawHeaders: readonly string[];
}

export type ParsedExtAuthRequest =
  | { readonly kind: "asked"; readonly request: ReceivedRequest; readonly by: "headers" | "itself" }
  | { readonly kind: "malformed"; readonly why: string }
  /** The path of the request is not the path of the ext-auth endpoint. */
  | { readonly kind: "elsewhere" };

const WAYS = [
  { method: "x-original-method", target: "x-original-uri" },
  { method: "x-forwarded-method", target: "x-forwarded-uri" },
] as const;
const TELLING: ReadonlySet<string> = new Set(WAYS.flatMap(({ method, target }) => [method, target]));
const FORWARDED_FOR = "x-forwarded-for";
const REAL_IP = "x-real-ip";
const FORWARDED_HOST = "x-forwarded-host";

/** Syntax of a method (RFC 9110, 5.6.2), limited to 64 characters. */
const METHOD = /^[!#$%&'*+.^_`|~\dA-Za-z-]{1,64}$/;

export function readExtAuthRequest({ method = "", url = "", rawHeaders }: ExtAuthRequest): ParsedExtAuthRequest {
  // Path to which Caddy appends the query of the client's request.
  const isHeaderWay = url === EXT_AUTH_PATH || url.startsWith(`${EXT_AUTH_PATH}?`);
  if (!isHeaderWay && !url.startsWith(`${EXT_AUTH_PATH}/`)) return { kind: "elsewhere" };

  const found = new Map<string, string>();
  const others: string[] = [];
  let forwardedFor: string | undefined;
  let realIp: string | undefined;
  const forwardedHosts: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const value = rawHeaders[i + 1] as string;
    const lower = name.toLowerCase();
    if (TELLING.has(lower)) {
      if (found.has(lower)) return unclear(`${name} was sent twice`);
      found.set(lower, value);
    } else if (lower === FORWARDED_FOR) forwardedFor = forwardedFor === undefined ? value : `${forwardedFor},${value}`;
    else {
      if (lower === REAL_IP) realIp = realIp === undefined ? value : `${realIp},${value}`;
      if (lower === FORWARDED_HOST) forwardedHosts.push(value);
      others.push(name, value);
    }
  }

  const last = lastOf(forwardedFor);
  // Envoy's own HTTP client appends Envoy's address to X-Forwarded-For, so the Envoy configuration sends the client's address in another
  // header.
  const client = isHeaderWay ? last : { address: addressIn(realIp ?? ""), before: last.before };
  if (client.before !== undefined) others.push("X-Forwarded-For", client.before);
  const asked = { httpVersion: "1.1", rawHeaders: others, socket: { remoteAddress: client.address } };
  if (!isHeaderWay) {
    if (found.size > 0) return unclear(`it is told by the path and by ${[...found.keys()].join(", ")}`);
    return { kind: "asked", request: { method, url: url.slice(EXT_AUTH_PATH.length), ...asked }, by: "itself" };
  }
  const way = WAYS.find((one) => found.has(one.method) && found.has(one.target));
  if (way === undefined)
    return unclear("the pair X-Original-Method, X-Original-URI or X-Forwarded-Method, X-Forwarded-Uri is missing");
  if (found.size > 2) return unclear(`it is told by ${[...found.keys()].join(", ")}`);
  const requestedMethod = found.get(way.method) as string;
  if (!METHOD.test(requestedMethod)) return unclear(`the value of ${way.method} is not a method`);
  if (way.target === "x-forwarded-uri") {
    if (forwardedHosts.length > 1) return unclear("X-Forwarded-Host was sent twice");
    const [host] = forwardedHosts;
    if (host !== undefined) asked.rawHeaders = withHost(others, host);
  }
  return {
    kind: "asked",
    request: { method: requestedMethod, url: found.get(way.target) as string, ...asked },
    by: "headers",
  };
}

/** Returns the headers with their Host replaced by `host`. */
function withHost(headers: readonly string[], host: string): string[] {
  const replaced = ["Host", host];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    if (name.toLowerCase() !== "host") replaced.push(name, headers[i + 1] as string);
  }
  return replaced;
}

const unclear = (why: string): ParsedExtAuthRequest => ({ kind: "malformed", why });

/**
 * Splits X-Forwarded-For into its last entry (the client address that the gateway observed) and the preceding entries (which came with the
 * request). If the last entry is not an address, the address is empty and matches no IP allow-list.
 */
export function lastOf(forwardedFor: string | undefined): { address: string; before: string | undefined } {
  if (forwardedFor === undefined) return { address: "", before: undefined };
  const comma = forwardedFor.lastIndexOf(",");
  const before = comma === -1 ? undefined : forwardedFor.slice(0, comma);
  const address = addressIn(forwardedFor.slice(comma + 1));
  return address === "" ? { address, before: undefined } : { address, before };
}

/** Returns the address in `text`, or an empty string if `text` is not an address. */
function addressIn(text: string): string {
  const address = withoutPort(text.trim());
  return isIP(address) === 0 ? "" : address;
}
