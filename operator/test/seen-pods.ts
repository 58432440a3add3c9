import type { GateSummary, PodSummary } from "../pods/pod.ts";

/** Summary of a gate that the webhook injected in front of port 8080 of an app. */
export const aGate: GateSummary = {
  guards: 8080,
  protocol: "http1",
  redirects: false,
  isOnHostNetwork: false,
  own: [19_080, 19_081],
  ports: [
    { name: undefined, number: 8080 },
    { name: "metrics", number: 9090 },
    { name: "http", number: 19_080 },
    { name: "postern-admin", number: 19_081 },
  ],
};

/** Summary of a running pod in the namespace `shop`, with a gate of the policy `it`. */
export const aPodSummary = (name: string, more: Partial<PodSummary> = {}): PodSummary => ({
  namespace: "shop",
  name,
  uid: `uid-of-${name}`,
  labels: { app: "orders", "postern.dev/gated-by": "it" },
  isRunning: true,
  hasEnded: false,
  gate: aGate,
  policy: "it",
  ...more,
});
