import type { ReactNode } from "react";
import { curlLine } from "../../components/curl-line.ts";
import { SecretDialog } from "../../components/secret-dialog.tsx";

/** A root key that was just made. The call of its command line needs no permission, so it works with exactly those that it has. */
export function NewRootKey({
  secret,
  onClose,
  children,
}: {
  secret: string;
  onClose: () => void;
  children?: ReactNode;
}): ReactNode {
  const call = { origin: location.origin, procedure: "workspaces.getWorkspace", rootKey: secret, body: {} } as const;
  return (
    <SecretDialog
      title="The new root key"
      label="Root key"
      secret={secret}
      curl={curlLine(call)}
      onClose={onClose}
      isWide
    >
      {children}
    </SecretDialog>
  );
}
