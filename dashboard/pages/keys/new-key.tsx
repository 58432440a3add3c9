import type { ReactNode } from "react";
import { curlLine } from "../../components/curl-line.ts";
import { SecretDialog } from "../../components/secret-dialog.tsx";

/** Shows a key that was just created. */
export function NewKey({
  secret,
  onClose,
  children,
}: {
  secret: string;
  onClose: () => void;
  children?: ReactNode;
}): ReactNode {
  const curl = curlLine({
    origin: location.origin,
    procedure: "keys.verifyKey",
    rootKey: "<a root key that may verify>",
    body: { key: secret },
  });
  return (
    <SecretDialog title="The new key" label="Key" secret={secret} curl={curl} onClose={onClose}>
      {children}
    </SecretDialog>
  );
}
