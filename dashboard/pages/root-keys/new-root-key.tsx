import type { ReactNode } from "react";
import { curlLine } from "../../parts/curl-line.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { SecretPanel } from "../../parts/secret-panel.tsx";

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
    <Dialog title="The new root key" isOpen isKept isWide onClose={onClose}>
      <SecretPanel secret={secret} label="Root key" curl={curlLine(call)}>
        {children}
      </SecretPanel>
    </Dialog>
  );
}
