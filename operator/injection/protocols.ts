import { PROTOCOL_ANNOTATION, TLS_SECRET_ANNOTATION } from "./names.ts";
import type { Pod } from "./pod.ts";

/** Protocols of a pod's gate. */
export interface GateProtocols {
  /** Protocol between the gate and the app. */
  readonly upstream: "http1" | "h2c";
  /** Secret in the pod's namespace with the server certificate of the gate; `undefined` if the gate does not use TLS. */
  readonly tlsSecret: string | undefined;
}

/** Pattern of Secret names: an RFC 1123 subdomain. */
const SECRET_NAME = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/;

/** Reads the protocols from the pod's annotations. */
export function protocolsOf({ metadata: { annotations = {} } }: Pod): GateProtocols | { readonly refused: string } {
  const { [PROTOCOL_ANNOTATION]: upstream = "http1", [TLS_SECRET_ANNOTATION]: tlsSecret } = annotations;
  if (upstream !== "http1" && upstream !== "h2c") {
    return {
      refused: `the annotation ${PROTOCOL_ANNOTATION} is neither http1 nor h2c (HTTP/2 without TLS, for gRPC).`,
    };
  }
  if (tlsSecret !== undefined && !SECRET_NAME.test(tlsSecret)) {
    return { refused: `the annotation ${TLS_SECRET_ANNOTATION} is not the name of a Secret.` };
  }
  return { upstream, tlsSecret };
}
