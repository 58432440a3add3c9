import { BlockList, isIP } from "node:net";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { readProxyBlock } from "../../core/policies/proxy-block.ts";
import { withoutPort } from "../../core/verification/ip-address.ts";

/** Returns the client's address from the address of the connection and the X-Forwarded-For values, which are joined with commas. */
export type FindClientAddress = (connectionIp: string, forwardedFor: string | undefined) => string;

/**
 * Compiles how the policy finds the client's address; `undefined` if it does not define this, in which case the API's IP list is not
 * checked.
 */
export function compileClientAddress(from: CompiledPolicy["clientAddress"]): FindClientAddress | undefined {
  if (from === undefined) return undefined;
  if (from.from === "connection") return (connectionIp) => withoutMapping(connectionIp);

  const trusted = new BlockList();
  for (const proxy of from.trustedProxies) addProxy(trusted, proxy);
  return (connectionIp, forwardedFor) => lastUntrusted(trusted, withoutMapping(connectionIp), forwardedFor);
}

/** Whether `connectionIp` is a trusted proxy, whose X-Forwarded-For is used. */
export const isProxy = (find: FindClientAddress | undefined, connectionIp: string): boolean =>
  find !== undefined && find(connectionIp, NO_ADDRESS) === NO_ADDRESS;

/** Must not be taken for a client address. */
const NO_ADDRESS = "unknown";

/**
 * Reads from the end, because each proxy appends the address that it saw: the first address that is not a trusted proxy is the last one
 * that a trusted proxy reported. All entries before it are controlled by the client.
 */
function lastUntrusted(trusted: BlockList, connectionIp: string, forwardedFor: string | undefined): string {
  if (!isTrusted(trusted, connectionIp) || forwardedFor === undefined) return connectionIp;
  const entries = forwardedFor.split(",");
  let nearest = connectionIp;
  for (let at = entries.length - 1; at >= 0; at--) {
    const address = withoutPort((entries[at] ?? "").trim());
    // An entry that is not an address ends the chain, because no trusted proxy reported the entries before it. It matches no list.
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
 * Skips an entry that is not an address or block, because it cannot match any address, and a form that `BlockList` does not read, such as
 * `::1%`. `BlockList` compares in native code, on every request. Its `::/0` includes IPv4, which policies may rely on and `isInRange` does
 * not do.
 */
function addProxy(trusted: BlockList, proxy: string): void {
  const block = readProxyBlock(proxy);
  if (block === undefined || isIP(block.address) === 0) return;
  trusted.addSubnet(block.address, block.bits, isIP(block.address) === 6 ? "ipv6" : "ipv4");
}
