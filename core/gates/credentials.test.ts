import { expect, test } from "vitest";
import { mayBeGateToken, podOfToken, policyOfPod, TokenReviewStatus } from "./credentials.ts";

const NOW_MS = 1_700_000_000_000;

const aReview = (changes: object = {}) =>
  TokenReviewStatus.parse({
    authenticated: true,
    audiences: ["postern"],
    user: {
      username: "system:serviceaccount:shop:orders.v2",
      uid: "account-uid",
      groups: ["system:serviceaccounts"],
      extra: {
        "authentication.kubernetes.io/pod-name": ["orders-1"],
        "authentication.kubernetes.io/pod-uid": ["pod-uid"],
      },
    },
    ...changes,
  });

const { user } = aReview();

test("gate credentials are issued to the pod in the Kubernetes TokenReview", () => {
  expect(podOfToken(aReview())).toEqual({ namespace: "shop", name: "orders-1", uid: "pod-uid" });
});

test.each([
  { name: "is not authenticated", review: aReview({ authenticated: false }) },
  { name: "is for another audience", review: aReview({ audiences: ["https://kubernetes.default.svc"] }) },
  { name: "has no audience, as of a server that ignores them", review: aReview({ audiences: undefined }) },
  { name: "is a person's", review: aReview({ user: { ...user, username: "alice" } }) },
  { name: "is a node's", review: aReview({ user: { ...user, username: "system:node:n1" } }) },
  {
    name: "has a namespace that is none",
    review: aReview({ user: { ...user, username: "system:serviceaccount:a/b:c" } }),
  },
  { name: "is of no pod", review: aReview({ user: { ...user, extra: {} } }) },
  { name: "has an empty answer", review: TokenReviewStatus.parse({}) },
])("service account token that $name belongs to no pod", ({ review }) => {
  expect(podOfToken(review)).toBe(undefined);
});

test("gate credentials are issued only for a policy in the pod's namespace", () => {
  const pod = { namespace: "shop", name: "orders-1", uid: "u" };
  const asked = { workspaceId: "ws_1", cluster: "east", policy: "orders" };
  expect(policyOfPod(asked, pod).manager).toBe("east/ApiKeyPolicy/shop/orders");
  expect(policyOfPod(asked, { ...pod, namespace: "other" }).policyId).not.toBe(policyOfPod(asked, pod).policyId);
  expect(policyOfPod({ ...asked, workspaceId: "ws_2" }, pod).policyId).not.toBe(policyOfPod(asked, pod).policyId);
});

const encoded = (part: unknown): string => Buffer.from(JSON.stringify(part)).toString("base64url");
const CLAIMS = {
  iss: "https://kubernetes.default.svc",
  sub: "system:serviceaccount:shop:orders",
  aud: ["postern"],
  exp: NOW_MS / 1000 + 1,
  "kubernetes.io": { namespace: "shop", pod: { name: "orders-1", uid: "u" } },
};
const aToken = (claims: object | null, header: unknown = { alg: "RS256" }): string =>
  `${encoded(header)}.${encoded(claims === null ? null : { ...CLAIMS, ...claims })}.signature`;

test.each([
  { name: "for us that has not ended", token: aToken({}), is: true },
  { name: "with one audience as a text", token: aToken({ aud: "postern" }), is: true },
  { name: "that has ended", token: aToken({ exp: NOW_MS / 1000 }), is: false },
  { name: "for another audience", token: aToken({ aud: ["api"] }), is: false },
  { name: "without claims", token: aToken(null), is: false },
  { name: "of a person", token: aToken({ sub: "alice" }), is: false },
  { name: "of no issuer", token: aToken({ iss: undefined }), is: false },
  { name: "of no pod", token: aToken({ "kubernetes.io": { namespace: "shop" } }), is: false },
  { name: "without an algorithm", token: aToken({}, {}), is: false },
  { name: "of two parts", token: aToken({}).replace(".signature", ""), is: false },
  { name: "of four parts", token: `${aToken({})}.x`, is: false },
  { name: "without a signature", token: aToken({}).replace("signature", ""), is: false },
  { name: "that is huge", token: aToken({ aud: ["postern", "x".repeat(9_000)] }), is: false },
  { name: "that is no token", token: "..", is: false },
])("token pre-check of a service account token $name returns $is", ({ token, is }) => {
  expect(mayBeGateToken(token, NOW_MS)).toBe(is);
});
