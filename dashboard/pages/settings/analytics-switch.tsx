import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { useDone } from "../../components/toast.tsx";

/** Switch for usage queries, with an explanation. */
export function AnalyticsSwitch({ isOn, mayChange }: { isOn: boolean; mayChange: boolean }): ReactNode {
  const [isAsking, setIsAsking] = useState(false);
  return (
    <>
      <p>
        Usage queries are <Badge kind={isOn ? "good" : "off"}>{isOn ? "on" : "off"}</Badge> (default: on).{" "}
        {isOn
          ? "Root keys and people with permission to read analytics can query usage."
          : "Usage queries fail with 412, and pages show no usage. Usage is still counted, and can be queried after usage queries are on again, within its retention."}
      </p>
      {mayChange && (
        <div>
          <Button onClick={() => setIsAsking(true)}>{isOn ? "Turn off" : "Turn on"}</Button>
        </div>
      )}
      {isAsking && <Ask isOn={isOn} onClose={() => setIsAsking(false)} />}
    </>
  );
}

function Ask({ isOn, onClose }: { isOn: boolean; onClose: () => void }): ReactNode {
  const done = useDone(onClose);
  // State when the dialog opened. The dialog uses it so that its text does not change while it closes.
  const [wasOn] = useState(isOn);
  const update = useChange("admin.updateSettings", { refreshes: ["admin.getSettings", "admin.getUsageState"] });
  const action = wasOn ? "Turn usage queries off" : "Turn usage queries on";
  return (
    <ConfirmDialog
      title={action}
      onClose={onClose}
      action={action}
      isBusy={update.isPending}
      error={update.error}
      onConfirm={() =>
        update.mutate({ analytics: !wasOn }, { onSuccess: () => done(`Usage queries are ${wasOn ? "off" : "on"}.`) })
      }
    >
      <p>
        {wasOn
          ? "From the next query on, analytics.getVerifications and analytics.getRatelimits fail with 412 for root keys and in the dashboard: the page Usage and the usage of keys and identities stay empty. Verifications and limits are unaffected, and usage is still counted."
          : "From the next query on, usage can be queried again, including usage from the time when queries were off."}
      </p>
    </ConfirmDialog>
  );
}
