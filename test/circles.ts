/**
 * A circle of a directed graph: nodes of which each leads to the next, and the last to the first. undefined when there is none. Of a
 * graph that has several, one is found.
 */
export function findCircle(graph: ReadonlyMap<string, Iterable<string>>): string[] | undefined {
  // What leads nowhere is in no circle, and neither is what leads only there.
  const left = new Map([...graph].map(([node, next]) => [node, new Set([...next].filter((one) => graph.has(one)))]));
  for (let before = -1; before !== left.size; ) {
    before = left.size;
    for (const [node, next] of left) {
      for (const one of next) if (!left.has(one)) next.delete(one);
      if (next.size === 0) left.delete(node);
    }
  }
  // Each node that is left leads to another that is left, so that some node is met again.
  const path: string[] = [];
  let [node] = left.keys();
  while (node !== undefined && !path.includes(node)) {
    path.push(node);
    [node] = left.get(node) ?? [];
  }
  return node === undefined ? undefined : path.slice(path.indexOf(node));
}
