import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { Difference } from "../../components/difference.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { TextField } from "../../components/text-field.tsx";
import { useDone } from "../../components/toast.tsx";
import { countText } from "../../components/uses.ts";
import { type Bound, type BoundChange, boundText, fieldLabel, readBounds, textOf, wordsOf } from "./bound.ts";

/** Form with all query limits. Only changed limits are sent, in one request. */
export function ChangeQueryLimits({ bounds, onClose }: { bounds: readonly Bound[]; onClose: () => void }): ReactNode {
  const done = useDone(onClose);
  // Limits when the form was opened. Concurrent changes by others do not affect the form, and saving does not overwrite them.
  const [opened] = useState(bounds);
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const update = useChange("admin.updateQueryLimits", { refreshes: ["admin.getSettings", "admin.getUsageState"] });
  const { changes, faults } = readBounds(opened, texts);
  return (
    <FormDialog
      title="Change the limits"
      action={changes.length === 0 ? "Save" : `Save ${countText(changes.length, "change")}`}
      doing="Changing the limits"
      fault={problemOf(changes.length, faults.size)}
      isBusy={update.isPending}
      error={update.error}
      isWide
      onClose={onClose}
      onSubmit={() =>
        update.mutate(Object.fromEntries(changes.map(({ bound, to }) => [bound.name, to])), {
          onSuccess: () => done(`${countText(changes.length, "limit")} changed.`),
        })
      }
    >
      <div className="form bound-fields">
        {opened.map((bound) => {
          const { name, byDefault } = bound;
          return (
            <TextField
              key={name}
              name={name}
              label={fieldLabel(bound)}
              value={texts[name] ?? textOf(bound)}
              onChange={(text) => setTexts((before) => ({ ...before, [name]: text }))}
              placeholder={textOf({ value: byDefault })}
              inputMode="numeric"
              hint={`${wordsOf(bound).about} Default: ${boundText(bound, byDefault)}.`}
              fault={faults.get(name)}
              lengthMax={20}
            />
          );
        })}
      </div>
      <WhatChanges changes={changes} />
    </FormDialog>
  );
}

function problemOf(changes: number, faults: number): string | undefined {
  if (faults > 0) return "Correct the marked fields first.";
  return changes === 0 ? "No changes yet." : undefined;
}

function WhatChanges({ changes }: { changes: readonly BoundChange[] }): ReactNode {
  if (changes.length === 0) return <p className="muted">No changes yet.</p>;
  return (
    <Difference
      caption="Changes"
      of="Limit"
      changes={changes.map(({ bound, to }) => ({
        name: wordsOf(bound).label,
        before: boundText(bound, bound.value),
        after: `${boundText(bound, to ?? bound.byDefault)}${to === null ? ", the default" : ""}`,
      }))}
    />
  );
}
