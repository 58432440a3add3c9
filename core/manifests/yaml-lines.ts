import type { Document, LineCounter } from "yaml";

/**
 * Returns a function that finds the line, from 1, of the value at a path. For a missing value it returns the line of the nearest ancestor.
 */
export function lineFinder(document: Document, lines: LineCounter): (path: readonly PropertyKey[]) => number {
  return (path) => {
    for (let length = path.length; length > 0; length--) {
      const node = document.getIn(path.slice(0, length), true) as { range?: [number, number, number] } | undefined;
      if (node?.range != null) return lines.linePos(node.range[0]).line;
    }
    return 1;
  };
}

/** Converts a problem's location, such as `spec.rules[0].mode`, to a path. */
export const pathOf = (location: string): (string | number)[] =>
  [...location.matchAll(/\[(\d+)\]|([^.[\]]+)/g)].map(([, index, name = ""]) =>
    index === undefined ? name : Number(index),
  );
