/* Names that injection writes to pods and that other components read. */

export { GATED_BY_LABEL, gatedBy, INTERCEPTION_LABEL } from "../pods/gated-by.ts";
export { GATE_CONTAINER, GUARDED_LABEL, POLICY_ANNOTATION, REDIRECT_CONTAINER } from "../pods/pod.ts";

export const TOKEN_VOLUME = "postern-token";
export const SNAPSHOT_VOLUME = "postern-snapshot";
export const TLS_VOLUME = "postern-tls";
/** Volumes that only the gate uses. */
export const GATE_VOLUMES: readonly string[] = [TOKEN_VOLUME, SNAPSHOT_VOLUME, TLS_VOLUME];

/** Annotation with the name or number of the guarded container port. Used only until the policy exists, which then defines the port. */
export const PORT_ANNOTATION = "postern.dev/target-port";
/** Annotation with the name of the Secret that contains the TLS certificate of the gate's port. */
export const TLS_SECRET_ANNOTATION = "postern.dev/tls-secret";
/** Annotation in which injection stores the original state of the app's containers. */
export const BEFORE_ANNOTATION = "postern.dev/before-injection";
/** Annotations with the resources of the gate, such as `postern.dev/gate-cpu-request`. */
export const RESOURCE_ANNOTATIONS = {
  cpuRequest: "postern.dev/gate-cpu-request",
  cpuLimit: "postern.dev/gate-cpu-limit",
  memoryRequest: "postern.dev/gate-memory-request",
  memoryLimit: "postern.dev/gate-memory-limit",
} as const;
