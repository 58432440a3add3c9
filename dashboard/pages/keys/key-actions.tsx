import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { useChange, useForget } from "../../api/queries.ts";
import { Button } from "../../components/button.tsx";
import { Checkbox } from "../../components/checkbox.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { lockedBy } from "../../components/managed-badge.tsx";
import { Menu } from "../../components/menu.tsx";
import { useDone, useToast } from "../../components/toast.tsx";
import { useRequired } from "../../components/use-needs.ts";
import { ChangeKey } from "./change-key.tsx";
import { ChangeRights } from "./change-rights.tsx";
import { CreditsDialog } from "./credits-dialog.tsx";
import type { KeyDetails } from "./details.ts";
import { RerollDialog } from "./reroll-dialog.tsx";

/** Actions for a key. Unavailable actions are disabled and show the reason. */
export function KeyActions({ details }: { details: KeyDetails }): ReactNode {
  const needs = useRequired();
  const [opened, setOpened] = useState<"change" | "rights" | "credits" | "reroll" | "enable" | "delete">();
  const close = (): void => setOpened(undefined);
  const gone =
    details.deletedAt !== undefined || details.apiDeletedAt !== undefined ? "The key is deleted." : undefined;
  const locked = gone ?? lockedBy(details.manager);
  const update = needs("api.*.update_key");
  const { enabled } = details.key;
  return (
    <>
      <Button unusable={locked ?? update} onClick={() => setOpened("change")}>
        Change
      </Button>
      <Button kind={enabled ? "danger" : "plain"} unusable={locked ?? update} onClick={() => setOpened("enable")}>
        {enabled ? "Disable" : "Enable"}
      </Button>
      <Menu
        label="More"
        items={[
          { label: "Roles and permissions", onChoose: () => setOpened("rights"), unusable: locked ?? update },
          { label: "Credits", onChoose: () => setOpened("credits"), unusable: gone ?? update },
          { label: "Reroll", onChoose: () => setOpened("reroll"), unusable: gone ?? needs("api.*.create_key") },
          {
            label: "Delete",
            isDanger: true,
            onChoose: () => setOpened("delete"),
            unusable: locked ?? needs("api.*.delete_key"),
          },
        ]}
      />
      {opened === "change" && <ChangeKey details={details} onClose={close} />}
      {opened === "rights" && <ChangeRights details={details} onClose={close} />}
      {opened === "credits" && <CreditsDialog details={details} onClose={close} />}
      {opened === "reroll" && <RerollDialog details={details} onClose={close} />}
      {opened === "enable" && <EnableDialog details={details} onClose={close} />}
      {opened === "delete" && <DeleteKey details={details} onClose={close} />}
    </>
  );
}

interface DialogProps {
  readonly details: KeyDetails;
  readonly onClose: () => void;
}

function EnableDialog({ details, onClose }: DialogProps): ReactNode {
  const done = useDone(onClose);
  const update = useChange("keys.updateKey", { refreshes: ["admin.getKeyDetails", "admin.searchKeys"] });
  // State that the person requested when the dialog opened. It is stored, because the page refreshes while the dialog is open.
  const [enabled] = useState(!details.key.enabled);
  const action = enabled ? "Enable the key" : "Disable the key";
  return (
    <ConfirmDialog
      title={action}
      onClose={onClose}
      action={action}
      isBusy={update.isPending}
      error={update.error}
      onConfirm={() =>
        update.mutate(
          { keyId: details.key.keyId, enabled },
          {
            onSuccess: () => done(`Key ${enabled ? "enabled" : "disabled"}.`),
          },
        )
      }
    >
      <p>
        {enabled
          ? "Gates and servers accept the key again within 30 seconds."
          : "Gates and servers reject the key within 30 seconds. You can enable it again."}
      </p>
    </ConfirmDialog>
  );
}

function DeleteKey({ details, onClose }: DialogProps): ReactNode {
  const navigate = useNavigate();
  const toast = useToast();
  const forget = useForget();
  const [permanent, setPermanent] = useState(false);
  const remove = useChange("keys.deleteKey", { refreshes: ["admin.searchKeys", "admin.listApis"] });
  const { keyId, name } = details.key;
  return (
    <ConfirmDialog
      title="Delete the key"
      onClose={onClose}
      action="Delete the key"
      typed={name ?? keyId}
      isBusy={remove.isPending}
      error={remove.error}
      onConfirm={() =>
        remove.mutate(
          { keyId, permanent },
          {
            onSuccess: async () => {
              toast("Key deleted.");
              await navigate({ to: "/keys", search: { api: details.apiId } });
              forget("admin.getKeyDetails", { keyId });
            },
          },
        )
      }
    >
      <p>
        The key stops working everywhere within 30 seconds and cannot be restored. To stop it temporarily, disable it.
      </p>
      <Checkbox
        label="Delete the key permanently, with all of its data"
        isChecked={permanent}
        onChange={setPermanent}
        hint="Otherwise its row is kept for a limited time, so that usage and the audit log still show its name."
      />
    </ConfirmDialog>
  );
}
