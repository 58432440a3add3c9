import { type FormEvent, type ReactNode, useId, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { TextField } from "../../parts/text-field.tsx";
import { useToast } from "../../parts/toast.tsx";
import { countText } from "../../parts/uses.ts";
import { type Bound, type BoundChange, boundText, fieldLabel, readBounds, textOf, wordsOf } from "./bound.ts";
import { faultAt } from "./fault-at.ts";
import "../../parts/plain-table.css";

/** All bounds in one form, of which only what was changed is sent, at once. */
export function ChangeBounds({ bounds, onClose }: { bounds: readonly Bound[]; onClose: () => void }): ReactNode {
  const form = useId();
  const toast = useToast();
  // What somebody else changes meanwhile is not mixed into what is typed here, and not sent either.
  const [opened] = useState(bounds);
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const update = useChange("admin.updateBounds", { refreshes: ["admin.getSettings", "admin.getUsageState"] });
  const { changes, faults } = readBounds(opened, texts);
  const unusable = unusableFor(changes.length, faults.size);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (unusable !== undefined || update.isPending) return;
    update.mutate(Object.fromEntries(changes.map(({ bound, to }) => [bound.name, to])), {
      onSuccess: () => {
        toast(`${countText(changes.length, "bound is", "bounds are")} changed.`);
        onClose();
      },
    });
  };
  return (
    <Dialog
      title="Change the bounds"
      isOpen
      isWide
      onClose={onClose}
      actions={
        <Button kind="main" type="submit" form={form} isBusy={update.isPending} unusable={unusable}>
          {changes.length === 0 ? "Save" : `Save ${countText(changes.length, "change")}`}
        </Button>
      }
    >
      <form id={form} className="form bound-fields" onSubmit={submit}>
        {opened.map((bound) => {
          const { name, byDefault } = bound;
          return (
            <TextField
              key={name}
              label={fieldLabel(bound)}
              value={texts[name] ?? textOf(bound)}
              onChange={(text) => setTexts((before) => ({ ...before, [name]: text }))}
              placeholder={textOf({ value: byDefault })}
              inputMode="numeric"
              hint={`${wordsOf(bound).about} Empty: the default, ${boundText(bound, byDefault)}.`}
              fault={faults.get(name) ?? faultAt(update.error, name)}
              lengthMax={20}
            />
          );
        })}
      </form>
      <WhatChanges changes={changes} />
      {update.error !== null && <ErrorNote error={update.error} doing="Changing the bounds" />}
    </Dialog>
  );
}

function unusableFor(changes: number, faults: number): string | undefined {
  if (faults > 0) return "Mend what is marked first.";
  return changes === 0 ? "Nothing is changed yet." : undefined;
}

function WhatChanges({ changes }: { changes: readonly BoundChange[] }): ReactNode {
  if (changes.length === 0) return <p className="muted">Nothing is changed yet.</p>;
  return (
    <table className="difference">
      <caption>What changes</caption>
      <thead>
        <tr>
          <th scope="col">Bound</th>
          <th scope="col">Before</th>
          <th scope="col">After</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ bound, to }) => (
          <tr key={bound.name}>
            <th scope="row">{wordsOf(bound).label}</th>
            <td>
              <del>{boundText(bound, bound.value)}</del>
            </td>
            <td>
              <ins>
                {boundText(bound, to ?? bound.byDefault)}
                {to === null && ", the default"}
              </ins>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
