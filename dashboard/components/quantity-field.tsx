import { type ReactNode, useState } from "react";
import { formatDuration, parseCount, parseDuration } from "./duration.ts";
import { TextField } from "./text-field.tsx";

/*
 * Field for a count or a duration, typed as text. The value is `undefined` while the text is empty or invalid, so that the form can detect
 * incomplete input. For an invalid text, the field shows an error.
 */

interface QuantityProps {
  readonly label: string;
  /** As of `TextField`. */
  readonly name?: string;
  readonly value: number | undefined;
  readonly onChange: (value: number | undefined) => void;
  readonly hint?: ReactNode;
  /** Problem with the value, shown only if the text is a valid count or duration. */
  readonly fault?: string | undefined;
  readonly isRequired?: boolean;
}

export function CountField(props: QuantityProps): ReactNode {
  return <QuantityField {...props} parse={parseCount} format={String} wanted="An integer, such as 1000." />;
}

/** In ms. */
export function DurationField(props: QuantityProps): ReactNode {
  return (
    <QuantityField
      {...props}
      parse={parseDuration}
      format={formatDuration}
      wanted="A duration, such as 60s, 5m, 1h or 7d."
    />
  );
}

function QuantityField({
  value,
  onChange,
  parse,
  format,
  wanted,
  fault,
  ...rest
}: QuantityProps & {
  parse: (text: string) => number | undefined;
  format: (value: number) => string;
  wanted: string;
}): ReactNode {
  const [text, setText] = useState(value === undefined ? "" : format(value));
  // Replaces the text if `value` was changed outside of the field, for example by a preset. Text that already expresses the value is kept.
  const shown = value !== undefined && parse(text) !== value ? format(value) : text;
  return (
    <TextField
      {...rest}
      value={shown}
      fault={shown.trim() !== "" && parse(shown) === undefined ? wanted : fault}
      onChange={(typed) => {
        setText(typed);
        onChange(parse(typed));
      }}
    />
  );
}
