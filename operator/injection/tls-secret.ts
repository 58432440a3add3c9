import { TLS_SECRET_ANNOTATION } from "./names.ts";
import type { Pod } from "./pod.ts";

/** Pattern of Secret names: an RFC 1123 subdomain. */
const SECRET_NAME = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/;

/**
 * Reads from the pod's annotations which Secret of its namespace contains the server certificate of the gate; `undefined` if the gate does
 * not use TLS.
 */
export function tlsSecretOf({
  metadata: { annotations = {} },
}: Pod): { readonly tlsSecret: string | undefined } | { readonly refused: string } {
  const { [TLS_SECRET_ANNOTATION]: tlsSecret } = annotations;
  if (tlsSecret !== undefined && !SECRET_NAME.test(tlsSecret)) {
    return { refused: `the annotation ${TLS_SECRET_ANNOTATION} is not the name of a Secret.` };
  }
  return { tlsSecret };
}
