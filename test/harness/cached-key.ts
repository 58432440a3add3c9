import type { KeyView } from "../../core/verification/key-view.ts";
import type { Projection } from "../../edge/projection/contract.ts";

/**
 * The key when it is cached and fresh: found without a promise. When it is not, this look asks the source, as any other, and the
 * answer is not waited for.
 */
export function cachedKey(projection: Projection, workspaceId: string, hash: string): KeyView | undefined {
  const found = projection.findKey(workspaceId, hash);
  if (found instanceof Promise) {
    found.catch(() => undefined);
    return undefined;
  }
  return found.status === "found" && found.stale !== true ? found.value : undefined;
}
