import type { ReactNode } from "react";
import { CodeBlock } from "./code-block.tsx";
import { Notice } from "./notice.tsx";

/**
 * A secret that is shown this once. It stands in the state of the dialog around it alone: never in the address, a store of the browser or
 * the cache of answers. Give the dialog `isKept`, so that no slip of a finger closes it.
 */
export function SecretPanel({
  secret,
  label,
  curl,
  children,
}: {
  secret: string;
  /** "Root key" */
  label: string;
  /** A command that uses it at once. */
  curl?: string;
  children?: ReactNode;
}): ReactNode {
  return (
    <>
      <Notice kind="warn">
        This is the only time that it is shown: the server keeps its hash alone. Copy it to where it is used before you
        close this.
      </Notice>
      <CodeBlock label={label} text={secret} />
      {curl !== undefined && <CodeBlock label="Try it" text={curl} />}
      {children}
    </>
  );
}
