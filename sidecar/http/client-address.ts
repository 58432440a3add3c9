import { BlockList, isIP } from "node:net";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { readProxyBlock } from "../../core/policies/proxy-block.ts";
import { withoutPort } from "../../core/verification/ip-address.ts";

/**
 * Returns the client's address, or `unknown` if neither the connection nor a trusted proxy reports a valid one. `forwardedFor` are the
 * X-Forwarded-For values, joined with commas.
 */
export type FindClientAddress = (connectionIp: string, forwardedFor: string | undefined) => string;

/**
 * Compiles the policy's definition of the client's address. Returns `undefined` if the policy has none; the API's IP list is then not
 * checked.
 */
export function compileClientAddress(from: CompiledPolicy["clientAddress"]): FindClientAddress | undefined {
  if (from === undefined) return undefined;
  if (from.from === "connection") return addressOf;

  const trusted = new BlockList();
  for (const proxy of from.trustedProxies) addProxy(trusted, proxy);
  return (connectionIp, forwardedFor) => lastUntrusted(trusted, addressOf(connectionIp), forwardedFor);
}

/** Returns whether `connectionIp` is a trusted proxy, whose X-Forwarded-For is used. */
export const isProxy = (find: FindClientAddress | undefined, connectionIp: string): boolean =>
  find !== undefined && isIP(connectionIp) !== 0 && find(connectionIp, NO_ADDRESS) === NO_ADDRESS;

/** Value for an unknown client address; it is on no IP list. */
const NO_ADDRESS = "unknown";

const addressOf = (text: string): string => (isIP(text) === 0 ? NO_ADDRESS : withoutMapping(text));

/**
 * Returns the last address that is not a trusted proxy, reading X-Forwarded-For from its end. Each proxy appends the address from which it
 * received the request, so this address was reported by a trusted proxy. Clients control all entries before it.
 */
function lastUntrusted(trusted: BlockList, connectionIp: string, forwardedFor: string | undefined): string {
  if (!isTrusted(trusted, connectionIp) || forwardedFor === undefined) return connectionIp;
  const entries = forwardedFor.split(",");
  let nearest = connectionIp;
  for (let at = entries.length - 1; at >= 0; at--) {
    const address = withoutPort((entries[at] ?? "").trim());
    // An entry that is not an address ends the chain, because no trusted proxy reported the entries before it. Its text is not used, so that
    // a client cannot invent addresses that are counted.
    if (isIP(address) === 0) return at === entries.length - 1 && address === "" ? nearest : NO_ADDRESS;
    nearest = withoutMapping(address);
    if (!isTrusted(trusted, nearest)) return nearest;
  }
  return nearest;
}

const MAPPED = "::ffff:";

/** Removes the prefix of an IPv4 address such as `::ffff:192.0.2.1`, the form in which a server that listens on IPv6 reports it. */
function withoutMapping(address: string): string {
  if (!address.startsWith(MAPPED)) return address;
  const rest = address.slice(MAPPED.length);
  return isIP(rest) === 4 ? rest : address;
}

const isTrusted = (trusted: BlockList, address: string): boolean =>
  trusted.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");

/**
 * Adds a trusted proxy. Skips an entry that is neither an address nor a block, because no address would match it. Also skips an entry that
 * `BlockList` cannot parse, such as `::1%`. `BlockList` is used because it compares in native code, and because its `::/0` includes IPv4,
 * unlike that of `isInRange`: policies may rely on this.
 */
function addProxy(trusted: BlockList, proxy: string): void {
  const block = readProxyBlock(proxy);
  if (block === undefined || isIP(block.address) === 0) return;
  trusted.addSubnet(block.address, block.bits, isIP(block.address) === 6 ? "ipv6" : "ipv4");
}
