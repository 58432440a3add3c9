import { canonicalIp } from "../verification/ip-address.ts";

/** A proxy, or a block of them, as a policy names it. */
export interface ProxyBlock {
  /** As it was written. */
  readonly address: string;
  /** How many of its first bits count: 0 to 32, of an address with colons 0 to 128. */
  readonly bits: number;
}

/**
 * An entry of a policy's `trustedProxies`, such as `10.0.0.1` or `10.0.0.0/8`; undefined when it is neither. Manifests are checked
 * with it, and gates read with it what was stored.
 *
 * It is not `parseIpRange`, which reads IP allow-lists and is stricter: manifests have always been allowed to say `/08`, and a
 * block of fewer than 96 bits around IPv4 within IPv6. A manifest that was accepted must not be refused by a later release.
 */
export function readProxyBlock(text: string): ProxyBlock | undefined {
  const [address = "", bitsText, ...rest] = text.split("/");
  if (canonicalIp(address) === undefined || rest.length > 0) return undefined;
  const width = address.includes(":") ? 128 : 32;
  if (bitsText === undefined) return { address, bits: width };
  const bits = Number(bitsText);
  return /^\d{1,3}$/.test(bitsText) && bits <= width ? { address, bits } : undefined;
}
