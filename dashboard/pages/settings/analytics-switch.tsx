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
        Queries of usage are <Badge kind={isOn ? "good" : "warn"}>{isOn ? "on" : "off"}</Badge> (by default on).{" "}
        {isOn
          ? "Root keys and people who may read analytics can ask for it."
          : "They are refused with 412, and pages show no usage. It is counted all the same, and can be asked for once it is on again, as far back as it is kept."}
      </p>
      {mayChange && (
        <div>
          <Button onClick={() => setIsAsking(true)}>{isOn ? "Switch off" : "Switch on"}</Button>
        </div>
      )}
      {isAsking && <Ask isOn={isOn} onClose={() => setIsAsking(false)} />}
    </>
  );
}

function Ask({ isOn, onClose }: { isOn: boolean; onClose: () => void }): ReactNode {
  const done = useDone(onClose);
  // The dialog keeps its text while it closes, although the response has changed the state.
  const [wasOn] = useState(isOn);
  const update = useChange("admin.updateSettings", { refreshes: ["admin.getSettings", "admin.getUsageState"] });
  const action = wasOn ? "Switch usage off" : "Switch usage on";
  return (
    <ConfirmDialog
      title={action}
      onClose={onClose}
      action={action}
      isBusy={update.isPending}
      error={update.error}
      onConfirm={() =>
        update.mutate({ analytics: !wasOn }, { onSuccess: () => done(`Queries of usage are ${wasOn ? "off" : "on"}.`) })
      }
    >
      <p>
        {wasOn
          ? "From the next query on, analytics.getVerifications and analytics.getRatelimits are refused with 412, for root keys and at this dashboard: the page Usage, and the usage of keys and identities, stay empty. Verifications and limits go on, and usage is counted all the same."
          : "From the next query on, usage can be asked for again, also that of the time in which it was off."}
      </p>
    </ConfirmDialog>
  );
}
