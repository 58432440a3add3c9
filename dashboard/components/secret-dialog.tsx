import type { ReactNode } from "react";
import { CodeBlock } from "./code-block.tsx";
import { Dialog } from "./dialog.tsx";
import { Notice } from "./notice.tsx";

/**
 * Shows a secret this once, until the person closes it by its button: no slip of a finger does. The secret stands in the state of what
 * opens this alone: never in the address, a store of the browser or the cache of answers.
 */
export function SecretDialog({
  title,
  label,
  secret,
  curl,
  onClose,
  isWide = false,
  children,
}: {
  /** "The new root key" */
  title: string;
  /** "Root key" */
  label: string;
  secret: string;
  /** A command that uses it at once. */
  curl: string;
  onClose: () => void;
  isWide?: boolean;
  children?: ReactNode;
}): ReactNode {
  return (
    <Dialog title={title} isOpen isKept isWide={isWide} onClose={onClose}>
      <Notice kind="warn">
        This is the only time that it is shown: the server keeps its hash alone. Copy it to where it is used before you
        close this.
      </Notice>
      <CodeBlock label={label} text={secret} />
      <CodeBlock label="Try it" text={curl} />
      {children}
    </Dialog>
  );
}
