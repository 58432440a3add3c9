import { expect, test } from "vitest";
import { readResourcePath } from "./watches.ts";

test.each([
  ["/apis/postern.dev/v1alpha1/roles", "roles", undefined],
  ["/apis/postern.dev/v1alpha1/namespaces/shop/roles", "roles", "shop"],
  ["/apis/postern.dev/v1alpha1/namespaces/shop/roles/editor", "roles", "shop"],
  ["/apis/postern.dev/v1alpha1/namespaces/shop/roles/editor/status", "roles/status", "shop"],
  ["/apis/coordination.k8s.io/v1/namespaces/namespaces/leases/namespaces", "leases", "namespaces"],
  ["/api/v1/pods", "pods", undefined],
  ["/api/v1/namespaces", "namespaces", undefined],
  ["/api/v1/namespaces/shop", "namespaces", undefined],
])("resource path %s has resource %s and namespace %s", (path, resource, namespace) =>
  expect(readResourcePath(path)).toEqual({ resource, namespace }),
);
