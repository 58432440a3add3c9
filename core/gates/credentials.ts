import * as z from "zod";
import { managerOfPolicy, policyIdOf } from "../policies/policy-id.ts";

/*
 * How a gate gets a user of the shared store: it shows a token of its pod's ServiceAccount to an api-server, which asks the Kubernetes
 * API whose it is. The namespace and the pod are those of the token, never those of the request: so a pod gets a user only for a policy
 * of its own namespace, and reports under its own name.
 */

/** What a token must be for. A token for the Kubernetes API itself is refused, so that no gate hands that out. */
export const GATE_AUDIENCE = "postern";

export const CREDENTIALS_PATH = "/gates/credentials";

/** What a gate sends. Unknown members are ignored: a newer gate may ask an older api-server. */
export const CredentialsRequest = z.object({
  workspaceId: z.string().min(1).max(255),
  cluster: z.string().min(1).max(253),
  /** The name of the policy, without its namespace. */
  policy: z.string().min(1).max(253),
});
export type CredentialsRequest = z.infer<typeof CredentialsRequest>;

export const CredentialsReply = z.object({
  username: z.string().min(1),
  password: z.string().min(1),
  /** From now. */
  validMs: z.number().positive(),
});
export type CredentialsReply = z.infer<typeof CredentialsReply>;

/** The `status` of a TokenReview of the Kubernetes API, as far as it matters here. */
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

/** Returns the pod whose token it is; undefined when it is no valid token of a pod for this purpose. */
export function podOfToken({ authenticated, audiences, user }: TokenReviewStatus): PodOfToken | undefined {
  if (!authenticated || !audiences.includes(GATE_AUDIENCE)) return undefined;
  const namespace = SERVICE_ACCOUNT.exec(user.username)?.[1];
  const [name, uid] = [user.extra[POD_NAME]?.[0], user.extra[POD_UID]?.[0]];
  if (namespace === undefined || !name || !uid) return undefined;
  return { namespace, name, uid };
}

/** The policy that a pod asks for, and its manager's name: always one of the pod's namespace. */
export function policyOfPod(
  { workspaceId, cluster, policy }: CredentialsRequest,
  { namespace }: PodOfToken,
): { policyId: string; manager: string } {
  const manager = managerOfPolicy({ cluster, namespace, name: policy });
  return { policyId: policyIdOf({ workspaceId, manager }), manager };
}

/** How pods with users of their own are called in reports. */
export const podIdOf = ({ namespace, name }: Pick<PodOfToken, "namespace" | "name">): string => `${namespace}/${name}`;

/**
 * A token is looked at before the Kubernetes API is asked, so that not every text makes a request there: it must look like one of a pod's
 * ServiceAccount, for us, that has not ended. Proves nothing.
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
