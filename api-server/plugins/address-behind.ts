import type { IncomingMessage } from "node:http";
import { all, compile } from "@fastify/proxy-addr";
import type { AddressBehindProxies } from "./direct-connection.ts";

/** Reads `X-Forwarded-For` as fastify does with its option `trustProxy`. `proxies` are addresses and ranges. Throws for any other. */
export function addressBehind(proxies: readonly string[]): AddressBehindProxies {
  const isTrusted = compile([...proxies]);
  return (remoteAddress, forwardedFor) => {
    const request = { headers: { "x-forwarded-for": forwardedFor }, socket: { remoteAddress } };
    return all(request as unknown as IncomingMessage, isTrusted).at(-1) as string;
  };
}
