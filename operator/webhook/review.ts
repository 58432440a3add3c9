import * as z from "zod";
import type { PatchOperation } from "../injection/json-patch.ts";

/* Types of the reviews that the Kubernetes API server sends (admission.k8s.io/v1). */

const API_VERSION = "admission.k8s.io/v1";

const Review = z.object({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal("AdmissionReview"),
  request: z.object({
    uid: z.string().min(1).max(256),
    kind: z.object({ group: z.string(), version: z.string(), kind: z.string() }),
    namespace: z.string().optional(),
    operation: z.string(),
    object: z.unknown(),
  }),
});
export type AdmissionRequest = z.output<typeof Review>["request"];

export type Admission =
  | { readonly allowed: true; readonly patch?: readonly PatchOperation[]; readonly warnings?: readonly string[] }
  | { readonly allowed: false; readonly message: string };

export const ADMITTED: Admission = { allowed: true };

/** Parses a review. Returns `undefined` for any other data, including other versions of the review. */
export const readReview = (body: unknown): AdmissionRequest | undefined => Review.safeParse(body).data?.request;

/** Maximum length of a warning. The API server truncates longer ones, and drops warnings if there are too many. */
const WARNING_CHARS_MAX = 240;
const WARNINGS_MAX = 8;

export function responseOf(uid: string, admission: Admission): object {
  const respond = (response: object) => ({
    apiVersion: API_VERSION,
    kind: "AdmissionReview",
    response: { uid, ...response },
  });
  if (!admission.allowed) {
    const { message } = admission;
    return respond({ allowed: false, status: { status: "Failure", reason: "Forbidden", code: 403, message } });
  }
  const { patch = [], warnings = [] } = admission;
  return respond({
    allowed: true,
    ...(warnings.length === 0
      ? {}
      : { warnings: warnings.slice(0, WARNINGS_MAX).map((text) => text.slice(0, WARNING_CHARS_MAX)) }),
    ...(patch.length === 0
      ? {}
      : { patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(patch)).toString("base64") }),
  });
}
