import { type IpRange, isInRange, parseIp } from "../../core/verification/ip-address.ts";

/** Whether a connection from this address may ask the doors, which believe what it says of the request and of its client. */
export type IsTrusted = (address: string | undefined) => boolean;

/** How a door knows those that may ask: by their address, or by the certificate without which TLS lets no one in. */
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
