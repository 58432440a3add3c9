import type { ReactNode } from "react";
import type { Data } from "../../../core/api/procedures.ts";
import { parseManager } from "../../../core/manifests/manager.ts";
import type { CompiledPolicy } from "../../../core/policies/policy.ts";
import { useRead } from "../../api/queries.ts";
import { namespaceIdsOf } from "../../components/policy-words.ts";
import { YamlButton } from "../../components/yaml-view.tsx";

/**
 * Shows the manifest of a policy. It contains the names of the namespaces that the policy's limits share. Shows nothing for a policy that
 * this release cannot read.
 */
export function PolicyYaml({ policy: shown }: { policy: Data<"admin.getPolicy"> }): ReactNode {
  const { policy, apiId, apiName, manager } = shown;
  const ids = namespaceIdsOf(policy);
  const { data = [] } = useRead(
    "admin.resolveNames",
    { kind: "namespace", ids: [...ids] },
    { enabled: ids.length > 0 },
  );
  if (apiName === undefined || !isReadable(policy)) return null;
  return (
    <YamlButton
      object={{
        kind: "ApiKeyPolicy",
        apiId,
        apiName,
        policy,
        namespaceNames: new Map(data.map(({ id, name }) => [id, name ?? id])),
        manager: manager === undefined ? undefined : parseManager(manager),
      }}
    />
  );
}

/**
 * Returns whether this release can read a policy. The server fills in members that another release omitted, unless it cannot read the
 * policy itself; then it returns the policy unchanged.
 */
function isReadable(policy: unknown): policy is CompiledPolicy {
  const { formatVersion, rules, credentials } = (policy ?? {}) as Partial<Record<string, unknown>>;
  return (formatVersion === 1 || formatVersion === 2) && Array.isArray(rules) && Array.isArray(credentials);
}
