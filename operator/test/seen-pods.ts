import type { SeenGate, SeenPod } from "../pods/pod.ts";

/** A gate as the webhook injects it: for port 8080 of the app, behind its own. */
export const aGate: SeenGate = {
  guards: 8080,
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

/** A running pod of `shop` with a gate of the policy `it`. */
export const aSeenPod = (name: string, more: Partial<SeenPod> = {}): SeenPod => ({
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
