import { GATE_AUDIENCE, TokenReviewStatus } from "../core/gates/credentials.ts";
import type { KubeClient } from "../operator/runtime/kube-client.ts";

const RESPONSE_MS_MAX = 5_000;

/**
 * Reviews a token for Postern's audience and returns the result, with the token's owner. Throws if the Kubernetes API is unavailable or
 * denies the review.
 */
export async function reviewToken({ send }: Pick<KubeClient, "send">, token: string): Promise<TokenReviewStatus> {
  const review = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenReview",
    spec: { token, audiences: [GATE_AUDIENCE] },
  };
  const path = "/apis/authentication.k8s.io/v1/tokenreviews";
  const { status } = await send<{ status?: unknown }>({
    method: "POST",
    path,
    body: review,
    deadlineMs: RESPONSE_MS_MAX,
  });
  return TokenReviewStatus.parse(status ?? {});
}
