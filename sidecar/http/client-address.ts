import { BlockList, isIP } from "node:net";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { readProxyBlock } from "../../core/policies/proxy-block.ts";
import { canonicalIp, withoutPort } from "../../core/verification/ip-address.ts";

/** Finds the client's address from the connection's and the X-Forwarded-For values, joined with commas if there were several. */
export type FindClientAddress = (connectionIp: string, forwardedFor: string | undefined) => string;

/** How the policy finds the client's address; undefined when it does not say, and the API's IP list then does not count. */
export function compileClientAddress(from: CompiledPolicy["clientAddress"]): FindClientAddress | undefined {
  if (from === undefined) return undefined;
  if (from.from === "connection") return (connectionIp) => withoutMapping(connectionIp);

  const trusted = new BlockList();
  for (const proxy of from.trustedProxies) addProxy(trusted, proxy);
  return (connectionIp, forwardedFor) => lastUntrusted(trusted, withoutMapping(connectionIp), forwardedFor);
}

/**
 * From the end, because each proxy appends the address that it saw: the first one that is not a trusted proxy is the last
 * that a trusted proxy vouches for. What stands before it was written by the client, who may write anything.
 */
function lastUntrusted(trusted: BlockList, connectionIp: string, forwardedFor: string | undefined): string {
  if (!isTrusted(trusted, connectionIp) || forwardedFor === undefined) return connectionIp;
  const entries = forwardedFor.split(",");
  let nearest = connectionIp;
  for (let at = entries.length - 1; at >= 0; at--) {
    const address = withoutPort((entries[at] ?? "").trim());
    // Something that is no address ends the chain: nobody vouches for what is before it. It is not on any list either.
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

/**
 * The address by which clients are told apart when something scarce is shared: of IPv6 the first 64 bits, because whoever has
 * one address there has all that begin like it.
 */
export function networkOf(address: string): string {
  if (!address.includes(":")) return address;
  const canonical = canonicalIp(address);
  if (canonical === undefined || !canonical.includes(":")) return canonical ?? address;
  return `${canonical.split(":", 4).join(":")}::/64`;
}

const isTrusted = (trusted: BlockList, address: string): boolean =>
  trusted.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");

/**
 * An entry that is no address or block is passed over: it cannot be anybody's address. The same goes for a spelling that `BlockList`
 * does not read, such as `::1%`. `BlockList` compares in native code, on every request; and for it `::/0` holds IPv4 too, which
 * policies may rely on and `isInRange` does not do.
 */
function addProxy(trusted: BlockList, proxy: string): void {
  const block = readProxyBlock(proxy);
  if (block === undefined || isIP(block.address) === 0) return;
  trusted.addSubnet(block.address, block.bits, isIP(block.address) === 6 ? "ipv6" : "ipv4");
}
