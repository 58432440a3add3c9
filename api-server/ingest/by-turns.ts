import type { EventSource } from "../../edge/events/contract.ts";

/**
 * The same source, which goes on where the last call ended: with the workspace after the last one that had events. One that
 * has more than a call may take, each time, does not keep the others waiting.
 */
export function takeByTurns(source: EventSource): EventSource {
  let lastId: string | undefined;
  return {
    take: (workspaceIds, max, handle) =>
      source.take(startingAfter(workspaceIds, lastId), max, (events) => {
        lastId = events.workspaceId;
        return handle(events);
      }),
  };
}

/** The same ids, from the one after `id` round to that; as they are when it is not among them. */
function startingAfter(ids: readonly string[], id: string | undefined): string[] {
  const at = id === undefined ? 0 : ids.indexOf(id) + 1;
  return [...ids.slice(at), ...ids.slice(0, at)];
}
