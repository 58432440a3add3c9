import type { IncomingMessage } from "node:http";
import { all, compile } from "@fastify/proxy-addr";
import type { AddressBehindProxies } from "./direct-connection.ts";

/** Returns a function that tests whether an address belongs to a trusted proxy. Throws like `addressBehind`. */
export function amongProxies(proxies: readonly string[]): (address: string) => boolean {
  const isTrusted = compile([...proxies]);
  return (address) => address !== "" && isTrusted(address, 0);
}

/**
 * Evaluates `X-Forwarded-For` in the same way as fastify's option `trustProxy`. `proxies` contains IP addresses and CIDR ranges; throws if
 * an entry is neither.
 */
export function addressBehind(proxies: readonly string[]): AddressBehindProxies {
  const isTrusted = compile([...proxies]);
  return (remoteAddress, forwardedFor) => {
    const request = { headers: { "x-forwarded-for": forwardedFor }, socket: { remoteAddress } };
    return all(request as unknown as IncomingMessage, isTrusted).at(-1) as string;
  };
}
