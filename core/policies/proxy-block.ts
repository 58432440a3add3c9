import { canonicalIp } from "../verification/ip-address.ts";

/** A trusted proxy of a policy, or a CIDR block of trusted proxies. */
export interface ProxyBlock {
  /** The address, as it is written in the policy. */
  readonly address: string;
  /** Number of leading bits that must match: 0 to 32, or 0 to 128 for an address with colons. */
  readonly bits: number;
}

/**
 * Parses an entry of a policy's `trustedProxies`, such as `10.0.0.1` or `10.0.0.0/8`; returns `undefined` if it is neither. The function
 * validates manifests, and gates use it to parse stored policies.
 *
 * It differs from `parseIpRange`, which parses IP allow-lists and is stricter: manifests may contain `/08`, and a block of fewer than 96
 * bits around IPv4 within IPv6. A newer version must not reject a manifest that was accepted.
 */
export function readProxyBlock(text: string): ProxyBlock | undefined {
  const [address = "", bitsText, ...rest] = text.split("/");
  if (canonicalIp(address) === undefined || rest.length > 0) return undefined;
  const width = address.includes(":") ? 128 : 32;
  if (bitsText === undefined) return { address, bits: width };
  const bits = Number(bitsText);
  return /^\d{1,3}$/.test(bitsText) && bits <= width ? { address, bits } : undefined;
}
