import { type ReactNode, useState } from "react";
import { QUOTA_MAX } from "../../../core/workspaces/workspace.ts";
import { useWorkspace } from "../../api/session.ts";
import { parseCount } from "../../components/duration.ts";
import { FormDialog } from "../../components/form-dialog.tsx";
import { Notice } from "../../components/notice.tsx";
import { TextField } from "../../components/text-field.tsx";
import { useUpdateWorkspace } from "./use-update-workspace.ts";
import { quotaText, type Workspace } from "./workspace.ts";

/** Approximate number of API requests per minute that the dashboard needs for one active person. */
const PAGES_NEED_PER_MINUTE = 60;

/** Returns the quota; `null` means unlimited, `undefined` means invalid. */
function readQuota(text: string): number | null | undefined {
  if (text.trim() === "") return null;
  const typed = parseCount(text);
  return typed === undefined || typed > QUOTA_MAX ? undefined : typed;
}

export function ChangeQuota({
  workspace,
  onClose,
}: {
  workspace: Pick<Workspace, "workspaceId" | "name" | "quotaPerMinute">;
  onClose: () => void;
}): ReactNode {
  const { workspace: shown } = useWorkspace();
  const [{ workspaceId, name, quotaPerMinute }] = useState(workspace);
  const [text, setText] = useState(quotaPerMinute === null ? "" : String(quotaPerMinute));
  const { save, isBusy, error } = useUpdateWorkspace(workspaceId, onClose);
  const quota = readQuota(text);
  const unusable =
    quota === undefined ? "Correct the quota first." : quota === quotaPerMinute ? "No changes yet." : undefined;
  return (
    <FormDialog
      title={`The quota of ${name}`}
      action="Save"
      doing="Changing the quota"
      fault={unusable}
      isBusy={isBusy}
      error={error}
      onClose={onClose}
      onSubmit={() => {
        if (quota !== undefined) save({ quotaPerMinute: quota }, `Quota of ${name} changed to ${quotaText(quota)}.`);
      }}
    >
      <TextField
        label="Requests per minute"
        name="quotaPerMinute"
        value={text}
        onChange={setText}
        inputMode="numeric"
        placeholder="unlimited"
        hint="All root keys and dashboard users share the quota. Leave it empty for no quota, which is the default."
        fault={
          quota === undefined
            ? `An integer from 0 to ${QUOTA_MAX.toLocaleString("en")}; empty for no quota.`
            : undefined
        }
        lengthMax={20}
      />
      {unusable === undefined && quota !== undefined && (
        <p>
          Before: {quotaText(quotaPerMinute)}. After: <strong>{quotaText(quota)}</strong>.
        </p>
      )}
      {quota === 0 && (
        <Notice kind="warn">
          All requests of its root keys, including the operator's, get 429, and the dashboard cannot open the workspace.
          {shown.id === workspaceId && " This page shows the workspace, and will switch to another one."}
        </Notice>
      )}
      {typeof quota === "number" && quota > 0 && quota < PAGES_NEED_PER_MINUTE && shown.id === workspaceId && (
        <Notice kind="warn">
          This page shows the workspace, and dashboard pages send about {PAGES_NEED_PER_MINUTE} requests per minute:
          with a smaller quota, some of them fail, including those of this page.
        </Notice>
      )}
    </FormDialog>
  );
}
