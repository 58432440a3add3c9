import { GATE_AUDIENCE, TokenReviewStatus } from "../core/gates/credentials.ts";
import type { KubeClient } from "../operator/runtime/kube-client.ts";

const RESPONSE_MS_MAX = 5_000;

/** Asks the Kubernetes API whose a token is, and whether it is for us. Throws when it does not answer, or may not be asked. */
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
