import type { ReactNode } from "react";
import { starsOf } from "../../../core/permissions/grants.ts";
import { Badge } from "../../components/badge.tsx";

/** Returns the explanation of a slug with wildcards; `undefined` for a slug without wildcards. */
export function starText(slug: string): string | undefined {
  switch (starsOf(slug)) {
    case "everything":
      return "Grants every permission, including permissions created later.";
    case "wildcard":
      return "Grants every permission that matches this pattern, including permissions created later.";
    case "literal":
      return "The * is literal here. It is a wildcard only as a complete segment after a dot or colon, such as docs.*.";
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
