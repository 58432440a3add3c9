import { type ReactNode, useState } from "react";
import { FormDialog } from "../../components/form-dialog.tsx";
import { FormSection } from "../../components/form-section.tsx";
import { EXPIRIES, Presets } from "../../components/presets.tsx";
import { TextField } from "../../components/text-field.tsx";
import { dayText, localInput, readLocalInput, zoneName } from "../../components/time.ts";
import { PermissionPicker } from "./permission-picker.tsx";
import { inWords } from "./tuples.ts";

export interface RootKeyDraft {
  readonly name: string;
  readonly environment: string;
  readonly permissions: readonly string[];
  /** Local date, `YYYY-MM-DD`. The root key expires at the end of this day; empty if it never expires. */
  readonly expiresOn: string;
}

const ENVIRONMENT = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/;

/** Returns the expiry, Unix ms; `undefined` if the root key never expires. */
export const expiresOf = ({ expiresOn }: Pick<RootKeyDraft, "expiresOn">): number | undefined =>
  expiresOn === "" ? undefined : endOfDay(expiresOn);

/** Returns the end of a local date, Unix ms; `undefined` if the text is not a date. */
function endOfDay(date: string): number | undefined {
  const lastMinute = readLocalInput(`${date}T23:59`);
  return typeof lastMinute === "number" ? lastMinute + 59_999 : undefined;
}

export const dateOf = (expires: number | undefined): string =>
  expires === undefined ? "" : localInput(expires).slice(0, 10);

/** Returns the reason why the form cannot be submitted yet; `undefined` if the form can be submitted. */
export function problemOf({ name, environment, permissions, expiresOn }: RootKeyDraft): string | undefined {
  if (name.trim().length < 3) return "Enter a name of at least 3 characters.";
  if (environment !== "" && !ENVIRONMENT.test(environment)) return "Enter an environment such as production.";
  if (expiresOn !== "" && endOfDay(expiresOn) === undefined) return "The expiry is not a date.";
  return permissions.length === 0 ? "Choose at least one permission." : undefined;
}

/** Describes the root key: "A root key named “ci” that may verify key on all APIs and their keys, never expires." */
export function outcomeOf({ name, permissions, expiresOn }: RootKeyDraft): string {
  const named = name.trim() === "" ? "" : ` named “${name.trim()}”`;
  const expires = expiresOf({ expiresOn });
  const life = expires === undefined ? "never expires" : `expires at the end of ${dayText(expires)}`;
  const rights = permissions.length === 0 ? "without permissions" : `that may ${inWords(permissions)}`;
  return `A root key${named} ${rights}; ${life}.`;
}

/** Form fields that the create and change forms share. */
export function RootKeyForm({
  title,
  action,
  doing,
  initial,
  isBusy,
  error,
  onSubmit,
  onClose,
}: {
  title: string;
  action: string;
  doing: string;
  initial: RootKeyDraft;
  isBusy: boolean;
  error: unknown;
  onSubmit: (draft: RootKeyDraft) => void;
  onClose: () => void;
}): ReactNode {
  const [draft, setDraft] = useState(initial);
  const [openedMs] = useState(() => Date.now());
  const dateAfter = (afterMs: number | undefined): string =>
    dateOf(afterMs === undefined ? undefined : openedMs + afterMs);
  const change = (changed: Partial<RootKeyDraft>): void => setDraft((before) => ({ ...before, ...changed }));
  return (
    <FormDialog
      title={title}
      action={action}
      fault={problemOf(draft)}
      isBusy={isBusy}
      error={error}
      doing={doing}
      onSubmit={() => onSubmit({ ...draft, name: draft.name.trim() })}
      onClose={onClose}
      outcome={outcomeOf(draft)}
      isWide
    >
      <FormSection title="Who">
        <TextField
          label="Name"
          name="name"
          value={draft.name}
          onChange={(name) => change({ name })}
          hint="Purpose and user of the root key, for lists and the audit log."
          lengthMax={510}
          isRequired
        />
        <TextField
          label="Environment"
          name="environment"
          value={draft.environment}
          onChange={(environment) => change({ environment })}
          placeholder="production"
          hint="Label that distinguishes the root keys of your environments. It has no effect."
          lengthMax={64}
        />
      </FormSection>
      <FormSection title="What it may do">
        <PermissionPicker permissions={draft.permissions} onChange={(permissions) => change({ permissions })} />
      </FormSection>
      <FormSection title="Life">
        <TextField
          label="Expires at the end of"
          name="expires"
          type="date"
          value={draft.expiresOn}
          onChange={(expiresOn) => change({ expiresOn })}
          hint={`In ${zoneName()}. Leave it empty for a root key that never expires.`}
        />
        <Presets
          label="Expires after"
          name="expires"
          presets={EXPIRIES}
          isChosen={(afterMs) => draft.expiresOn === dateAfter(afterMs)}
          onChoose={(afterMs) => change({ expiresOn: dateAfter(afterMs) })}
        />
      </FormSection>
    </FormDialog>
  );
}
