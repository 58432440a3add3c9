import { type IpRange, isInRange, parseIp } from "../../core/verification/ip-address.ts";

/** Whether a connection from this address may ask the doors, which believe what it says of the request and of its client. */
export type IsTrusted = (address: string | undefined) => boolean;

export const trustedAmong =
  (ranges: readonly IpRange[]): IsTrusted =>
  (address) => {
    const parsed = address === undefined ? undefined : parseIp(address);
    return parsed !== undefined && ranges.some((range) => isInRange(parsed, range));
  };
