import type { LabelSelector, NetworkPolicySpec, PolicyPort } from "./network-policy.ts";

const PORT_MAX = 65_535;

/**
 * The spec of a NetworkPolicy that keeps everyone from some TCP ports of the selected pods, and leaves all else as it is without
 * one: other TCP ports, other protocols, all senders. Pure.
 *
 * A NetworkPolicy can only allow, so all ports around the closed ones are listed, as ranges. A network plugin without `endPort` reads a
 * range as its first port; for its sake the ports that the pods list are listed one by one as well.
 */
export function allowAllExcept(
  podSelector: LabelSelector,
  { closed, listed }: { readonly closed: readonly number[]; readonly listed: readonly number[] },
): NetworkPolicySpec {
  const tcp = (port: number, endPort?: number): PolicyPort => ({
    protocol: "TCP",
    port,
    ...(endPort === undefined || endPort === port ? {} : { endPort }),
  });
  const ports: PolicyPort[] = [...new Set(listed)]
    .filter((port) => !closed.includes(port))
    .sort((a, b) => a - b)
    .map((port) => tcp(port));
  let first = 1;
  for (const port of [...new Set(closed)].sort((a, b) => a - b)) {
    if (first < port) ports.push(tcp(first, port - 1));
    first = port + 1;
  }
  if (first <= PORT_MAX) ports.push(tcp(first, PORT_MAX));
  return {
    podSelector,
    policyTypes: ["Ingress"],
    ingress: [{ ports: [...ports, { protocol: "UDP" }, { protocol: "SCTP" }] }],
  };
}
