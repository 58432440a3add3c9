import { type IpRange, isInRange, parseIp } from "../../core/verification/ip-address.ts";

/**
 * Returns whether a connection from this address may use the ext-auth endpoints. Only trusted addresses may, because the endpoints believe
 * what a gateway reports about a request and its client.
 */
export type IsTrusted = (address: string | undefined) => boolean;

/** Method by which an ext-auth endpoint authenticates gateways: by their address, or by a client certificate that TLS requires. */
export interface Trust {
  readonly by: "address" | "certificate";
  readonly isTrusted: IsTrusted;
}

export const trustedAmong = (ranges: readonly IpRange[]): Trust => ({
  by: "address",
  isTrusted: (address) => {
    const parsed = address === undefined ? undefined : parseIp(address);
    return parsed !== undefined && ranges.some((range) => isInRange(parsed, range));
  },
});

export const TRUSTED_BY_CERTIFICATE: Trust = { by: "certificate", isTrusted: () => true };
