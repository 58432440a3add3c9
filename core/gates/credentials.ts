import * as z from "zod";
import { managerOfPolicy } from "../manifests/manager.ts";
import { policyIdOf } from "../policies/policy-id.ts";

/*
 * Issues a Redis user to a gate: the gate sends a token of its pod's ServiceAccount to an api-server, which validates it with the
 * Kubernetes API. The namespace and the pod come from the token, never from the request, so a pod gets a user only for a policy in its own
 * namespace, and can report only under its own name.
 */

/** Required audience of a token. A token for the Kubernetes API itself is rejected, so that gates never send such a token. */
export const GATE_AUDIENCE = "postern";

export const CREDENTIALS_PATH = "/gates/credentials";

/** Request of a gate. Unknown members are ignored, because a newer gate may call an older api-server. */
export const CredentialsRequest = z.object({
  workspaceId: z.string().min(1).max(255),
  cluster: z.string().min(1).max(253),
  /** Name of the policy, without its namespace. */
  policy: z.string().min(1).max(253),
});
export type CredentialsRequest = z.infer<typeof CredentialsRequest>;

export const CredentialsReply = z.object({
  username: z.string().min(1),
  password: z.string().min(1),
  /** Validity from now, in ms. */
  validMs: z.number().positive(),
});
export type CredentialsReply = z.infer<typeof CredentialsReply>;

/** The required members of a Kubernetes TokenReview's `status`. */
export const TokenReviewStatus = z.object({
  authenticated: z.boolean().default(false),
  audiences: z.array(z.string()).default([]),
  user: z
    .object({
      username: z.string().default(""),
      extra: z.record(z.string(), z.array(z.string())).default({}),
    })
    .default({ username: "", extra: {} }),
});
export type TokenReviewStatus = z.infer<typeof TokenReviewStatus>;

export interface PodOfToken {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

const SERVICE_ACCOUNT = /^system:serviceaccount:([a-z0-9-]{1,63}):[a-z0-9.-]{1,253}$/;
const POD_NAME = "authentication.kubernetes.io/pod-name";
const POD_UID = "authentication.kubernetes.io/pod-uid";

/** Returns the pod to which the token belongs; `undefined` if it is not a valid token of a pod for this audience. */
export function podOfToken({ authenticated, audiences, user }: TokenReviewStatus): PodOfToken | undefined {
  if (!authenticated || !audiences.includes(GATE_AUDIENCE)) return undefined;
  const namespace = SERVICE_ACCOUNT.exec(user.username)?.[1];
  const [name, uid] = [user.extra[POD_NAME]?.[0], user.extra[POD_UID]?.[0]];
  if (namespace === undefined || !name || !uid) return undefined;
  return { namespace, name, uid };
}

/**
 * Returns the id of the policy that a pod requests, and the manager name of this policy. The policy is always in the namespace of the pod.
 */
export function policyOfPod(
  { workspaceId, cluster, policy }: CredentialsRequest,
  { namespace }: PodOfToken,
): { policyId: string; manager: string } {
  const manager = managerOfPolicy({ cluster, namespace, name: policy });
  return { policyId: policyIdOf({ workspaceId, manager }), manager };
}

/** Returns the name under which a pod with its own Redis user reports. */
export const podIdOf = ({ namespace, name }: Pick<PodOfToken, "namespace" | "name">): string => `${namespace}/${name}`;

/**
 * Pre-checks a token before the Kubernetes API is called, so that invalid tokens cause no request: the token must look like an unexpired
 * token of a pod's ServiceAccount for this audience. This check does not authenticate the token.
 */
export function mayBeGateToken(token: string, nowMs: number): boolean {
  if (token.length > TOKEN_CHARS_MAX || !TOKEN.test(token)) return false;
  const [header = "", payload = ""] = token.split(".");
  try {
    const claims = Claims.parse(decoded(payload));
    Header.parse(decoded(header));
    return [claims.aud].flat().includes(GATE_AUDIENCE) && claims.exp * 1000 > nowMs;
  } catch {
    return false;
  }
}

const TOKEN_CHARS_MAX = 8_192;
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;
const Header = z.object({ alg: z.string().min(1) });
const Claims = z.object({
  iss: z.string().min(1),
  sub: z.string().regex(SERVICE_ACCOUNT),
  aud: z.union([z.string(), z.array(z.string())]),
  exp: z.number(),
  "kubernetes.io": z.object({ pod: z.object({ name: z.string().min(1), uid: z.string().min(1) }) }),
});

const decoded = (part: string): unknown => JSON.parse(Buffer.from(part, "base64url").toString());
