import ipaddr from "ipaddr.js";

/* IP addresses and ranges in a comparable form: independent of spelling, with IPv4-mapped IPv6 as IPv4. */

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;

/** Range of all addresses that share the first `bits` bits with `address`. */
export interface IpRange {
  readonly address: IpAddress;
  readonly bits: number;
}

/**
 * Parses an address. Drops a zone, and converts an IPv4-mapped IPv6 address (as a dual-stack socket reports IPv4 peers) to IPv4. Returns
 * `undefined` for anything else, including the short and octal forms of IPv4, which are ambiguous.
 */
export function parseIp(text: string): IpAddress | undefined {
  if (!text.includes(":")) return ipaddr.IPv4.isValidFourPartDecimal(text) ? ipaddr.IPv4.parse(text) : undefined;
  const [address = ""] = text.split("%", 1);
  if (!ipaddr.IPv6.isValid(address)) return undefined;
  const parsed = ipaddr.IPv6.parse(address);
  return parsed.isIPv4MappedAddress() ? parsed.toIPv4Address() : parsed;
}

/**
 * Returns the canonical form of an address: dotted decimal for IPv4, eight groups of lower-case hexadecimal digits for IPv6; `undefined`
 * for any other text.
 */
export const canonicalIp = (text: string): string | undefined => parseIp(text)?.toNormalizedString();

/** Parses a range in CIDR notation (RFC 4632, 3.1; RFC 4291, 2.3), such as `10.0.0.0/8`; a single address is a range too. */
export function parseIpRange(text: string): IpRange | undefined {
  const [addressText = "", bitsText, ...rest] = text.split("/");
  const address = parseIp(addressText);
  if (address === undefined || rest.length > 0) return undefined;
  const width = address.kind() === "ipv4" ? 32 : 128;
  if (bitsText === undefined) return { address, bits: width };
  if (!/^(?:0|[1-9]\d{0,2})$/.test(bitsText)) return undefined;
  // The first 96 bits of an IPv4-mapped IPv6 address are the mapping prefix.
  const bits = Number(bitsText) - (width === 32 && addressText.includes(":") ? 96 : 0);
  return bits >= 0 && bits <= width ? { address, bits } : undefined;
}

export const isInRange = (address: IpAddress, range: IpRange): boolean =>
  address.kind() === range.address.kind() && address.match(range.address, range.bits);

/** Returns the address without its port; some proxies write `203.0.113.9:4711` or `[2001:db8::1]:4711`. */
export function withoutPort(address: string): string {
  if (address.startsWith("[")) return address.slice(1, Math.max(1, address.indexOf("]")));
  const colon = address.indexOf(":");
  return colon !== -1 && colon === address.lastIndexOf(":") ? address.slice(0, colon) : address;
}

/**
 * Returns the address that distinguishes clients when they share a limited resource. For IPv6 the result is the network of the first
 * `bits` bits, because a client usually has all addresses of a /64.
 */
export function networkOf(address: string, bits = 64): string {
  if (!address.includes(":")) return address;
  const parsed = parseIp(address);
  if (parsed === undefined) return address;
  if (parsed.kind() === "ipv4") return parsed.toNormalizedString();
  if (bits === 64) return `${parsed.toNormalizedString().split(":", 4).join(":")}::/64`;
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toNormalizedString()}/${bits}`).toNormalizedString()}/${bits}`;
}
