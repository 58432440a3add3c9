/*
 * IP addresses in one canonical spelling, so that two texts for the same address compare equal. Parsed here, and not by
 * node:net, because core stays pure and because the canonical form is the point.
 */

/**
 * The canonical form of an address: dotted decimal for IPv4 and for IPv4 mapped into IPv6 (a dual-stack socket reports its
 * IPv4 peers so), eight groups of lower-case hexadecimal for IPv6, a zone left out. undefined for anything else.
 */
export function canonicalIp(text: string): string | undefined {
  if (!text.includes(":")) return parseIpv4(text) === undefined ? undefined : text;
  const groups = parseIpv6(text);
  if (groups === undefined) return undefined;
  const isMapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
  if (!isMapped) return groups.map((group) => group.toString(16)).join(":");
  const [high = 0, low = 0] = groups.slice(6);
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}

/** An address as a proxy wrote it: some write `203.0.113.9:4711` or `[2001:db8::1]:4711`. */
export function withoutPort(address: string): string {
  if (address.startsWith("[")) return address.slice(1, Math.max(1, address.indexOf("]")));
  const colon = address.indexOf(":");
  return colon !== -1 && colon === address.lastIndexOf(":") ? address.slice(0, colon) : address;
}

/** Leading zeros are refused: some parsers read them as octal, so such a text has no one meaning. */
const DECIMAL_OCTET = /^(?:0|[1-9]\d{0,2})$/;
const HEX_GROUP = /^[0-9a-f]{1,4}$/i;

function parseIpv4(text: string): number[] | undefined {
  const parts = text.split(".");
  if (parts.length !== 4) return undefined;
  if (!parts.every((part) => DECIMAL_OCTET.test(part) && Number(part) <= 255)) return undefined;
  return parts.map(Number);
}

/** The eight groups, by RFC 4291 section 2.2: one `::` at most, and the last 32 bits may be written as IPv4. */
function parseIpv6(text: string): number[] | undefined {
  const [address = ""] = text.split("%", 1);
  const halves = address.split("::");
  if (halves.length > 2) return undefined;
  const [headText = "", tailText] = halves;
  const head = parseGroups(headText, tailText === undefined);
  const tail = tailText === undefined ? [] : parseGroups(tailText, true);
  if (head === undefined || tail === undefined) return undefined;
  const missing = 8 - head.length - tail.length;
  if (tailText === undefined ? missing !== 0 : missing < 1) return undefined;
  return [...head, ...new Array<number>(missing).fill(0), ...tail];
}

function parseGroups(text: string, mayEndInIpv4: boolean): number[] | undefined {
  if (text === "") return [];
  const groups: number[] = [];
  const parts = text.split(":");
  for (const [i, part] of parts.entries()) {
    if (mayEndInIpv4 && i === parts.length - 1 && part.includes(".")) {
      const octets = parseIpv4(part);
      if (octets === undefined) return undefined;
      const [a = 0, b = 0, c = 0, d = 0] = octets;
      groups.push(a * 256 + b, c * 256 + d);
    } else {
      if (!HEX_GROUP.test(part)) return undefined;
      groups.push(Number.parseInt(part, 16));
    }
  }
  return groups;
}
