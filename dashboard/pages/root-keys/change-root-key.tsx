import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { useDone } from "../../components/toast.tsx";
import { nameOf, type RootKeyDetails, SHOWN_BY } from "./root-key.ts";
import { dateOf, expiresOf, RootKeyForm } from "./root-key-form.tsx";
import { differenceOf } from "./tuples.ts";

/*
 * Dialogs that change a root key. Each change sends the revision that the person saw when the dialog opened. If someone else has changed
 * the root key since, the server rejects the change, and the dialog says so.
 */

interface DialogProps {
  readonly rootKey: RootKeyDetails;
  readonly onClose: () => void;
}

/** Returns the root key as it was when the dialog opened, even if the page has refreshed since. */
const useOpened = (rootKey: RootKeyDetails): RootKeyDetails => useState(rootKey)[0];

export function ChangeRootKey({ rootKey, onClose }: DialogProps): ReactNode {
  const { rootKeyId, revision, ...before } = useOpened(rootKey);
  const done = useDone(onClose);
  const update = useChange("admin.updateRootKey", { refreshes: SHOWN_BY });
  return (
    <RootKeyForm
      title="Change the root key"
      action="Save"
      doing="Changing the root key"
      initial={{
        name: before.name ?? "",
        environment: before.environment ?? "",
        permissions: before.permissions,
        expiresOn: dateOf(before.expires),
      }}
      isBusy={update.isPending}
      error={update.error}
      onClose={onClose}
      onSubmit={(draft) => {
        // If the date of the expiry is unchanged, the expiry keeps its time of day.
        const isSameDay = draft.expiresOn === dateOf(before.expires);
        update.mutate(
          {
            rootKeyId,
            revision,
            name: draft.name,
            environment: draft.environment === "" ? null : draft.environment,
            permissions: [...draft.permissions],
            ...(isSameDay ? {} : { expires: expiresOf(draft) ?? null }),
          },
          {
            onSuccess: () => done("Root key changed."),
          },
        );
      }}
    />
  );
}

export function EnableRootKey({ rootKey, onClose }: DialogProps): ReactNode {
  const { rootKeyId, revision, enabled: wasEnabled } = useOpened(rootKey);
  const done = useDone(onClose);
  const update = useChange("admin.updateRootKey", { refreshes: SHOWN_BY });
  const action = wasEnabled ? "Disable the root key" : "Enable the root key";
  return (
    <ConfirmDialog
      title={action}
      onClose={onClose}
      action={action}
      isBusy={update.isPending}
      error={update.error}
      onConfirm={() =>
        update.mutate(
          { rootKeyId, revision, enabled: !wasEnabled },
          {
            onSuccess: () => done(`Root key ${wasEnabled ? "disabled" : "enabled"}.`),
          },
        )
      }
    >
      <p>
        {wasEnabled
          ? "All servers reject the root key with 401 within 30 seconds. You can enable it again."
          : "All servers accept the root key again."}
      </p>
    </ConfirmDialog>
  );
}

/** Dialog that reduces a root key to the permissions that it uses. It first shows the difference. */
export function NarrowRootKey({
  rootKey,
  narrowTo,
  onClose,
}: DialogProps & { readonly narrowTo: readonly string[] }): ReactNode {
  const { rootKeyId, revision, permissions } = useOpened(rootKey);
  const [wanted] = useState(narrowTo);
  const done = useDone(onClose);
  const update = useChange("admin.updateRootKey", { refreshes: SHOWN_BY });
  const { goes, comes } = differenceOf(permissions, wanted);
  return (
    <ConfirmDialog
      title="Restrict the root key"
      onClose={onClose}
      action="Restrict"
      isBusy={update.isPending}
      error={update.error}
      onConfirm={() =>
        update.mutate(
          { rootKeyId, revision, permissions: [...wanted] },
          {
            onSuccess: () => done("Root key restricted."),
          },
        )
      }
    >
      <p>
        The root key keeps the permissions that it used in the last 30 days. A job that runs less often may need one of
        the others.
      </p>
      <ul className="tuples">
        {goes.map((tuple) => (
          <li key={tuple}>
            <code>− {tuple}</code>
          </li>
        ))}
        {comes.map((tuple) => (
          <li key={tuple}>
            <code>+ {tuple}</code>
          </li>
        ))}
      </ul>
    </ConfirmDialog>
  );
}

export function RevokeRootKey({ rootKey, onClose, onRevoked }: DialogProps & { onRevoked: () => void }): ReactNode {
  const done = useDone(onRevoked);
  const remove = useChange("admin.deleteRootKey", { refreshes: ["admin.listRootKeys"] });
  return (
    <ConfirmDialog
      title="Revoke the root key"
      onClose={onClose}
      action="Revoke the root key"
      typed={nameOf(rootKey)}
      isBusy={remove.isPending}
      error={remove.error}
      onConfirm={() =>
        remove.mutate(
          { rootKeyId: rootKey.rootKeyId },
          {
            onSuccess: () => done("Root key revoked."),
          },
        )
      }
    >
      <p>
        All servers reject the root key with 401 permanently, within 30 seconds. To stop it temporarily, disable it; to
        replace it, rotate it. A root key that <code>POSTERN_ROOT_KEY</code> contains is created again when an
        api-server starts.
      </p>
    </ConfirmDialog>
  );
}
