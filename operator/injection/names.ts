/* Names that injection writes to pods and that other components read. */

export { GATED_BY_LABEL, gatedBy, INTERCEPTION_LABEL } from "../pods/gated-by.ts";
export { GATE_CONTAINER, GUARDED_LABEL, POLICY_ANNOTATION, REDIRECT_CONTAINER } from "../pods/pod.ts";

export const TOKEN_VOLUME = "postern-token";
export const SNAPSHOT_VOLUME = "postern-snapshot";
export const TLS_VOLUME = "postern-tls";
/** Volumes that only the gate uses. */
export const GATE_VOLUMES: readonly string[] = [TOKEN_VOLUME, SNAPSHOT_VOLUME, TLS_VOLUME];

/** The guarded container port, by name or number. Used only while the policy does not exist; after that, the policy defines it. */
export const PORT_ANNOTATION = "postern.dev/target-port";
/** Protocol of the app: `http1` or `h2c`. */
export const PROTOCOL_ANNOTATION = "postern.dev/upstream-protocol";
/** Secret with the TLS certificate of the gate's port. */
export const TLS_SECRET_ANNOTATION = "postern.dev/tls-secret";
/** Set on the pod: state of the app's containers before injection. */
export const BEFORE_ANNOTATION = "postern.dev/before-injection";
/** Resources of the gate, such as `postern.dev/gate-cpu-request`. */
export const RESOURCE_ANNOTATIONS = {
  cpuRequest: "postern.dev/gate-cpu-request",
  cpuLimit: "postern.dev/gate-cpu-limit",
  memoryRequest: "postern.dev/gate-memory-request",
  memoryLimit: "postern.dev/gate-memory-limit",
} as const;
