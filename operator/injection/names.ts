/* What injection writes on pods and reads from them, and others look for. */

export { GATED_BY_LABEL, gatedBy, INTERCEPTION_LABEL } from "../pods/gated-by.ts";
export { GATE_CONTAINER, GUARDED_LABEL, POLICY_ANNOTATION, REDIRECT_CONTAINER } from "../pods/pod.ts";

export const TOKEN_VOLUME = "postern-token";
export const SNAPSHOT_VOLUME = "postern-snapshot";
export const TLS_VOLUME = "postern-tls";
/** Volumes of the gate alone. */
export const GATE_VOLUMES: readonly string[] = [TOKEN_VOLUME, SNAPSHOT_VOLUME, TLS_VOLUME];

/** The guarded container port, by name or number; read only while the policy does not exist, which says it afterwards. */
export const PORT_ANNOTATION = "postern.dev/target-port";
/** What the app speaks: `http1` or `h2c`. */
export const PROTOCOL_ANNOTATION = "postern.dev/upstream-protocol";
/** The Secret with the certificate of the gate's port. */
export const TLS_SECRET_ANNOTATION = "postern.dev/tls-secret";
/** Written on the pod: what the app's containers had before. */
export const BEFORE_ANNOTATION = "postern.dev/before-injection";
/** `postern.dev/gate-cpu-request` and so on: resources of the gate. */
export const RESOURCE_ANNOTATIONS = {
  cpuRequest: "postern.dev/gate-cpu-request",
  cpuLimit: "postern.dev/gate-cpu-limit",
  memoryRequest: "postern.dev/gate-memory-request",
  memoryLimit: "postern.dev/gate-memory-limit",
} as const;
