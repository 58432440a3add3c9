import type { KeyView } from "../../core/verification/key-view.ts";
import type { Projection } from "../../edge/projection/contract.ts";

/** Returns the key if it is cached and fresh, without a promise. Otherwise the call also requests it from the source in the background. */
export function cachedKey(projection: Projection, workspaceId: string, hash: string): KeyView | undefined {
  const found = projection.findKey(workspaceId, hash);
  if (found instanceof Promise) {
    found.catch(() => undefined);
    return undefined;
  }
  return found.status === "found" && found.stale !== true ? found.value : undefined;
}
