import type { ReactNode } from "react";
import { CodeBlock } from "./code-block.tsx";
import { Dialog } from "./dialog.tsx";
import { Notice } from "./notice.tsx";

/**
 * Shows a secret once, until the person closes the dialog by its button. Only the component that opens the dialog has the secret: it is not
 * in the URL, in the browser's storage or in the response cache.
 */
export function SecretDialog({
  title,
  label,
  what = "key",
  secret,
  curl,
  onClose,
  isWide = false,
  children,
}: {
  /** Title of the dialog, such as "The new root key". */
  title: string;
  /** Name of the secret, such as "Root key". */
  label: string;
  /** Noun for the secret. */
  what?: string;
  secret: string;
  /** curl command that uses the secret; omitted for a secret that only a browser uses. */
  curl?: string;
  onClose: () => void;
  isWide?: boolean;
  children?: ReactNode;
}): ReactNode {
  return (
    <Dialog title={title} isOpen keeps="secret" isWide={isWide} onClose={onClose}>
      <Notice kind="warn">
        The {what} is shown only once, because the server stores only its hash. Copy it to where you need it before you
        close this dialog.
      </Notice>
      <CodeBlock label={label} text={secret} />
      {curl !== undefined && <CodeBlock label={`Try the ${what}`} text={curl} />}
      {children}
    </Dialog>
  );
}
