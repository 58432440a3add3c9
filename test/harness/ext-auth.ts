import { parseIpRange } from "../../core/verification/ip-address.ts";
import type { ExtAuthConfig } from "../../sidecar/config.ts";
import { type GateOptions, openGate, type TestGate } from "./gate.ts";

const ANYWHERE_FREE = { host: "127.0.0.1", port: 0 };

export type ExtAuthOptions = GateOptions & { readonly trusted?: string };

/** Opens a gate with one ext-auth endpoint and returns its port. */
export async function openGateWithExtAuth(
  kind: "authorize" | "grpc",
  { trusted, ...options }: ExtAuthOptions = {},
): Promise<{ gate: TestGate; port: number }> {
  const gate = await openGate({ ...options, config: { ...options.config, extAuth: extAuthOf([kind], trusted) } });
  const url = kind === "grpc" ? gate.sidecar.grpcUrl : gate.sidecar.authorizeUrl;
  return { gate, port: Number(new URL(url ?? "").port) };
}

/** Returns options for ext-auth endpoints on free ports that accept clients from `trusted`, an address or CIDR block. */
export function extAuthOf(kinds: readonly ("authorize" | "grpc")[], trusted = "127.0.0.1"): ExtAuthConfig {
  const range = parseIpRange(trusted);
  if (range === undefined) throw new Error(`${trusted} is no range`);
  return { ...Object.fromEntries(kinds.map((kind) => [kind, ANYWHERE_FREE])), trusted: [range] };
}
