import ipaddr from "ipaddr.js";

/* IP addresses and ranges in a form that can be compared: independent of spelling, and IPv4 mapped into IPv6 as IPv4. */

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;

/** The addresses that share the first `bits` bits with `address`. */
export interface IpRange {
  readonly address: IpAddress;
  readonly bits: number;
}

/**
 * Parses an address. A zone is dropped, and an IPv4 address mapped into IPv6 (as a dual-stack socket reports IPv4 peers)
 * becomes that IPv4 address. Returns undefined for anything else, also for the short and octal forms of IPv4, which are ambiguous.
 */
export function parseIp(text: string): IpAddress | undefined {
  if (!text.includes(":")) return ipaddr.IPv4.isValidFourPartDecimal(text) ? ipaddr.IPv4.parse(text) : undefined;
  const [address = ""] = text.split("%", 1);
  if (!ipaddr.IPv6.isValid(address)) return undefined;
  const parsed = ipaddr.IPv6.parse(address);
  return parsed.isIPv4MappedAddress() ? parsed.toIPv4Address() : parsed;
}

/**
 * The canonical form of an address: dotted decimal for IPv4, eight groups of lower-case hexadecimal for IPv6. undefined if it is not
 * an address.
 */
export const canonicalIp = (text: string): string | undefined => parseIp(text)?.toNormalizedString();

/** A range in CIDR notation (RFC 4632, 3.1; RFC 4291, 2.3), such as `10.0.0.0/8`; a single address is a range too. */
export function parseIpRange(text: string): IpRange | undefined {
  const [addressText = "", bitsText, ...rest] = text.split("/");
  const address = parseIp(addressText);
  if (address === undefined || rest.length > 0) return undefined;
  const width = address.kind() === "ipv4" ? 32 : 128;
  if (bitsText === undefined) return { address, bits: width };
  if (!/^(?:0|[1-9]\d{0,2})$/.test(bitsText)) return undefined;
  // For IPv4 mapped into IPv6, the first 96 bits are the mapping.
  const bits = Number(bitsText) - (width === 32 && addressText.includes(":") ? 96 : 0);
  return bits >= 0 && bits <= width ? { address, bits } : undefined;
}

export const isInRange = (address: IpAddress, range: IpRange): boolean =>
  address.kind() === range.address.kind() && address.match(range.address, range.bits);

/** An address as a proxy wrote it: some write `203.0.113.9:4711` or `[2001:db8::1]:4711`. */
export function withoutPort(address: string): string {
  if (address.startsWith("[")) return address.slice(1, Math.max(1, address.indexOf("]")));
  const colon = address.indexOf(":");
  return colon !== -1 && colon === address.lastIndexOf(":") ? address.slice(0, colon) : address;
}

/**
 * The address by which clients are distinguished when something scarce is shared. For IPv6 the first 64 bits, because a client with
 * one such address usually has all of them.
 */
export function networkOf(address: string): string {
  if (!address.includes(":")) return address;
  const canonical = canonicalIp(address);
  if (canonical === undefined || !canonical.includes(":")) return canonical ?? address;
  return `${canonical.split(":", 4).join(":")}::/64`;
}
