import { isIP } from "node:net";
import { withoutPort } from "../../core/verification/ip-address.ts";
import type { ReceivedRequest } from "../gate/judge.ts";

/*
 * The request that a gateway asks about, read from the request that it sends to the HTTP door. There are three ways to tell:
 *
 *   X-Original-Method, X-Original-URI        nginx, HAProxy and Apache, as their configurations in docs/gateways.md say
 *   X-Forwarded-Method, X-Forwarded-Uri      Traefik's ForwardAuth, Caddy's forward_auth
 *   the request itself, below /authorize     Envoy's ext_authz over HTTP: PUT /authorize/orders/1 asks about PUT /orders/1
 *
 * The address of its client is the last entry of X-Forwarded-For; in Envoy's way, that of X-Real-IP.
 *
 * A gateway passes on most headers of its client. So a request that tells in more than one way, twice, or by half is refused: one of
 * these headers would be the client's.
 */

export const DOOR_PATH = "/authorize";

export interface DoorRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly rawHeaders: readonly string[];
}

export type Asked =
  | { readonly kind: "asked"; readonly request: ReceivedRequest; readonly by: "headers" | "itself" }
  | { readonly kind: "unclear"; readonly why: string }
  /** Not addressed to the door. */
  | { readonly kind: "elsewhere" };

const WAYS = [
  { method: "x-original-method", target: "x-original-uri" },
  { method: "x-forwarded-method", target: "x-forwarded-uri" },
] as const;
const TELLING: ReadonlySet<string> = new Set(WAYS.flatMap(({ method, target }) => [method, target]));
const FORWARDED_FOR = "x-forwarded-for";
const REAL_IP = "x-real-ip";

/** RFC 9110, 5.6.2. */
const METHOD = /^[!#$%&'*+.^_`|~\dA-Za-z-]{1,64}$/;

export function readAsked({ method = "", url = "", rawHeaders }: DoorRequest): Asked {
  // Caddy leaves the query of its request there.
  const isHeaderWay = url === DOOR_PATH || url.startsWith(`${DOOR_PATH}?`);
  if (!isHeaderWay && !url.startsWith(`${DOOR_PATH}/`)) return { kind: "elsewhere" };

  const told = new Map<string, string>();
  const others: string[] = [];
  let forwardedFor: string | undefined;
  let realIp: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const value = rawHeaders[i + 1] as string;
    const lower = name.toLowerCase();
    if (TELLING.has(lower)) {
      if (told.has(lower)) return unclear(`${name} was sent twice`);
      told.set(lower, value);
    } else if (lower === FORWARDED_FOR) forwardedFor = forwardedFor === undefined ? value : `${forwardedFor},${value}`;
    else {
      if (lower === REAL_IP) realIp = realIp === undefined ? value : `${realIp},${value}`;
      others.push(name, value);
    }
  }

  const last = lastOf(forwardedFor);
  // Envoy's own client appends Envoy's address instead, so its configuration tells the client's in another header.
  const client = isHeaderWay ? last : { address: addressIn(realIp ?? ""), before: last.before };
  if (client.before !== undefined) others.push("X-Forwarded-For", client.before);
  const asked = { httpVersion: "1.1", rawHeaders: others, socket: { remoteAddress: client.address } };
  if (!isHeaderWay) {
    if (told.size > 0) return unclear(`it is told by the path and by ${[...told.keys()].join(", ")}`);
    return { kind: "asked", request: { method, url: url.slice(DOOR_PATH.length), ...asked }, by: "itself" };
  }
  const way = WAYS.find((one) => told.has(one.method) && told.has(one.target));
  if (way === undefined)
    return unclear("the pair X-Original-Method, X-Original-URI or X-Forwarded-Method, X-Forwarded-Uri is missing");
  if (told.size > 2) return unclear(`it is told by ${[...told.keys()].join(", ")}`);
  const askedMethod = told.get(way.method) as string;
  if (!METHOD.test(askedMethod)) return unclear(`the value of ${way.method} is not a method`);
  return {
    kind: "asked",
    request: { method: askedMethod, url: told.get(way.target) as string, ...asked },
    by: "headers",
  };
}

const unclear = (why: string): Asked => ({ kind: "unclear", why });

/**
 * The last entry of X-Forwarded-For is the address that the gateway saw, which takes the place of the connection's; what stands before it
 * came with the request. Without a usable entry there is no address, and no IP allow-list lets it in.
 */
export function lastOf(forwardedFor: string | undefined): { address: string; before: string | undefined } {
  if (forwardedFor === undefined) return { address: "", before: undefined };
  const comma = forwardedFor.lastIndexOf(",");
  const before = comma === -1 ? undefined : forwardedFor.slice(0, comma);
  const address = addressIn(forwardedFor.slice(comma + 1));
  return address === "" ? { address, before: undefined } : { address, before };
}

/** Empty when the text is not an address. */
function addressIn(text: string): string {
  const address = withoutPort(text.trim());
  return isIP(address) === 0 ? "" : address;
}
