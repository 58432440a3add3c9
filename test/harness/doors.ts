import { parseIpRange } from "../../core/verification/ip-address.ts";
import type { DoorsConfig } from "../../sidecar/config.ts";

const ANYWHERE_FREE = { host: "127.0.0.1", port: 0 };

/** Doors of a gate on free ports, of which those from `trusted`, an address or a block, may ask. */
export function doorsOf(kinds: readonly ("authorize" | "grpc")[], trusted = "127.0.0.1"): DoorsConfig {
  const range = parseIpRange(trusted);
  if (range === undefined) throw new Error(`${trusted} is no range`);
  return { ...Object.fromEntries(kinds.map((kind) => [kind, ANYWHERE_FREE])), trusted: [range] };
}
