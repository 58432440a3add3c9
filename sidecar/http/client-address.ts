import { BlockList, isIP } from "node:net";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { readProxyBlock } from "../../core/policies/proxy-block.ts";
import { withoutPort } from "../../core/verification/ip-address.ts";

/** Finds the client's address from that of the connection and the X-Forwarded-For values, joined with commas if there are several. */
export type FindClientAddress = (connectionIp: string, forwardedFor: string | undefined) => string;

/** How the policy finds the client's address; undefined when it does not say, and then the API's IP list is not checked. */
export function compileClientAddress(from: CompiledPolicy["clientAddress"]): FindClientAddress | undefined {
  if (from === undefined) return undefined;
  if (from.from === "connection") return (connectionIp) => withoutMapping(connectionIp);

  const trusted = new BlockList();
  for (const proxy of from.trustedProxies) addProxy(trusted, proxy);
  return (connectionIp, forwardedFor) => lastUntrusted(trusted, withoutMapping(connectionIp), forwardedFor);
}

/** Whether a connection from `connectionIp` is of a proxy: what it says of its clients is believed. */
export const isProxy = (find: FindClientAddress | undefined, connectionIp: string): boolean =>
  find !== undefined && find(connectionIp, NO_ADDRESS) === NO_ADDRESS;

/** It would be taken for the client's if it were believed. */
const NO_ADDRESS = "unknown";

/**
 * Reads from the end, because each proxy appends the address that it saw: the first one that is not a trusted proxy is the last
 * that a trusted proxy reported. Everything before it was written by the client, which may write anything.
 */
function lastUntrusted(trusted: BlockList, connectionIp: string, forwardedFor: string | undefined): string {
  if (!isTrusted(trusted, connectionIp) || forwardedFor === undefined) return connectionIp;
  const entries = forwardedFor.split(",");
  let nearest = connectionIp;
  for (let at = entries.length - 1; at >= 0; at--) {
    const address = withoutPort((entries[at] ?? "").trim());
    // An entry that is not an address ends the chain, because nothing before it was reported by a trusted proxy. It matches no list.
    if (isIP(address) === 0) return at === entries.length - 1 && address === "" ? nearest : address;
    nearest = withoutMapping(address);
    if (!isTrusted(trusted, nearest)) return nearest;
  }
  return nearest;
}

const MAPPED = "::ffff:";

/** A server that listens on IPv6 sees IPv4 clients as `::ffff:192.0.2.1`. */
function withoutMapping(address: string): string {
  if (!address.startsWith(MAPPED)) return address;
  const rest = address.slice(MAPPED.length);
  return isIP(rest) === 4 ? rest : address;
}

const isTrusted = (trusted: BlockList, address: string): boolean =>
  trusted.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");

/**
 * Skips an entry that is not an address or block, because it cannot match any address; also a form that `BlockList`
 * does not read, such as `::1%`. `BlockList` is used because it compares in native code, on every request; and because its `::/0`
 * includes IPv4, which policies may rely on and `isInRange` does not do.
 */
function addProxy(trusted: BlockList, proxy: string): void {
  const block = readProxyBlock(proxy);
  if (block === undefined || isIP(block.address) === 0) return;
  trusted.addSubnet(block.address, block.bits, isIP(block.address) === 6 ? "ipv6" : "ipv4");
}
