import type { ReactNode } from "react";
import { Button } from "../../components/button.tsx";
import { TextField } from "../../components/text-field.tsx";

/** Maximum length of a slug and of a role name. */
export const SLUG_LENGTH_MAX = 128;
/** Maximum length of a description and of a permission name. */
export const TEXT_LENGTH_MAX = 512;

/** Form input for the changeable fields of a role or a permission. */
export interface Naming {
  readonly name: string;
  /** Description; the empty string if there is no description. */
  readonly description: string;
}

export const namingOf = ({ name, description = "" }: { name: string; description?: string | undefined }): Naming => ({
  name,
  description,
});

export const isRenamed = (before: Naming, { name, description }: Naming): boolean =>
  name !== before.name || description !== before.description;

/** Form for the name and the description of the object in a drawer, with a save button. */
export function NameForm({
  before,
  naming,
  onChange,
  nameLengthMax,
  nameHint,
  locked,
  isBusy,
  onSubmit,
}: {
  before: Naming;
  naming: Naming;
  onChange: (naming: Naming) => void;
  nameLengthMax: number;
  nameHint?: string;
  /** Reason why the person may not change the object; `undefined` if the person may. */
  locked: string | undefined;
  isBusy: boolean;
  onSubmit: () => void;
}): ReactNode {
  const { name, description } = naming;
  const fault =
    locked ?? (name.trim() === "" ? "Enter a name." : isRenamed(before, naming) ? undefined : "No changes.");
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        if (fault === undefined && !isBusy) onSubmit();
      }}
    >
      <TextField
        label="Name"
        value={name}
        onChange={(text) => onChange({ ...naming, name: text })}
        lengthMax={nameLengthMax}
        isRequired
        hint={nameHint}
      />
      <DescriptionField value={description} onChange={(text) => onChange({ ...naming, description: text })} />
      <p>
        <Button type="submit" isBusy={isBusy} unusable={fault}>
          Save
        </Button>
      </p>
    </form>
  );
}

export function DescriptionField({
  value,
  onChange,
}: {
  value: string;
  onChange: (description: string) => void;
}): ReactNode {
  return (
    <TextField
      label="Description"
      name="description"
      value={value}
      onChange={onChange}
      lengthMax={TEXT_LENGTH_MAX}
      rows={2}
    />
  );
}
