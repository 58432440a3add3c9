import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { FormDialog } from "../../components/form-dialog.tsx";
import { CountField } from "../../components/quantity-field.tsx";
import { Select } from "../../components/select.tsx";
import { useDone } from "../../components/toast.tsx";
import type { KeyDetails } from "./details.ts";

/** Adding and subtracting apply to the current number of credits, so credits that the key spends meanwhile stay spent. */
export function CreditsDialog({ details, onClose }: { details: KeyDetails; onClose: () => void }): ReactNode {
  const done = useDone(onClose);
  const isLimited = details.key.credits !== undefined;
  const [operation, setOperation] = useState<"increment" | "decrement" | "set" | "unlimited">(
    isLimited ? "increment" : "set",
  );
  const [value, setValue] = useState<number>();
  const change = useChange("keys.updateCredits", { refreshes: ["admin.getKeyDetails", "admin.searchKeys"] });
  const needsLimited = operation === "increment" || operation === "decrement";
  const fault =
    needsLimited && !isLimited
      ? "The key has unlimited credits: set a number first."
      : operation !== "unlimited" && value === undefined
        ? "Enter the number of credits."
        : undefined;
  const submit = (): void => {
    const { keyId } = details.key;
    change.mutate(
      operation === "unlimited" ? { keyId, operation: "set", value: null } : { keyId, operation, value: value ?? 0 },
      {
        onSuccess: ({ remaining }) =>
          done(
            remaining === null
              ? "The key has unlimited credits."
              : `The key has ${remaining.toLocaleString("en")} credits.`,
          ),
      },
    );
  };
  return (
    <FormDialog
      title="Credits of the key"
      action="Save"
      fault={fault}
      isBusy={change.isPending}
      error={change.error}
      doing="Changing the credits"
      onSubmit={submit}
      onClose={onClose}
    >
      <p>Now: {details.key.credits?.remaining.toLocaleString("en") ?? "unlimited"}.</p>
      <Select
        label="Action"
        value={operation}
        options={[
          { value: "increment", label: "Add" },
          { value: "decrement", label: "Subtract" },
          { value: "set", label: "Set to" },
          { value: "unlimited", label: "Make unlimited, without a refill" },
        ]}
        onChange={setOperation}
      />
      {operation !== "unlimited" && <CountField label="Credits" name="value" value={value} onChange={setValue} />}
    </FormDialog>
  );
}
