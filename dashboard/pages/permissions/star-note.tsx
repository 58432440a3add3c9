import type { ReactNode } from "react";
import { starsOf } from "../../../core/permissions/grants.ts";
import { Badge } from "../../components/badge.tsx";

/** Explains a slug with wildcards; `undefined` for a slug without wildcards. */
export function starText(slug: string): string | undefined {
  switch (starsOf(slug)) {
    case "everything":
      return "Grants everything, also permissions that are made later.";
    case "wildcard":
      return "Grants everything that fits this pattern, also permissions that are made later.";
    case "literal":
      return "A * in it stands for itself: it is a wildcard only as a whole segment after a dot or colon, such as docs.*.";
    case "none":
      return undefined;
  }
}

/** Badge in a row that explains a slug with wildcards. */
export function StarNote({ slug }: { slug: string }): ReactNode {
  const stars = starsOf(slug);
  if (stars === "none") return null;
  const label = { everything: "everything", wildcard: "wildcard", literal: "literal *" }[stars];
  return (
    <Badge kind={stars === "wildcard" ? "plain" : "warn"} title={starText(slug)}>
      {label}
    </Badge>
  );
}
