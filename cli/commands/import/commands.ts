import type { Command } from "../../command.ts";
import { findApisixKeys } from "../../import/apisix.ts";
import { findEnvoyGatewayKeys } from "../../import/envoy-gateway.ts";
import { findKongKeys } from "../../import/kong.ts";
import { findKuadrantKeys } from "../../import/kuadrant.ts";
import { findUnkeyKeys } from "../../import/unkey.ts";
import { importCommand, type System } from "./import-command.ts";

const SYSTEMS = {
  kong: {
    title: "Kong",
    file: "the output of `deck gateway dump`, or KongConsumers with their Secrets",
    find: findKongKeys,
    hasTtl: true,
  },
  apisix: {
    title: "APISIX",
    file: "apisix.yaml, an ADC file, Admin API responses, or objects of the ingress controller",
    find: findApisixKeys,
  },
  kuadrant: {
    title: "Kuadrant",
    file: "the Secrets of Authorino: `kubectl get secret -A -l authorino.kuadrant.io/managed-by=authorino -o yaml`",
    find: findKuadrantKeys,
  },
  "envoy-gateway": {
    title: "Envoy Gateway",
    file: "its SecurityPolicies and the Secrets that they reference",
    find: findEnvoyGatewayKeys,
  },
  unkey: {
    title: "Unkey",
    file: "responses of apis.listKeys with decrypt, as JSON",
    find: findUnkeyKeys,
  },
} as const satisfies Readonly<Record<string, System>>;

/** Returns the command that imports the keys of this system. */
export const importFrom = (system: keyof typeof SYSTEMS): Command => importCommand(system, SYSTEMS[system]);
