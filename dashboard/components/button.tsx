import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import "./button.css";

export interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "type" | "disabled"> {
  readonly kind?: "plain" | "main" | "danger" | "quiet";
  readonly type?: "button" | "submit";
  /** Cannot be used now, and why, in words. It keeps its place in the order of Tab, so that the reason can be read. */
  readonly unusable?: string | undefined;
  /** What it began is not finished: pressing it again does nothing. */
  readonly isBusy?: boolean;
  readonly ref?: Ref<HTMLButtonElement>;
}

export function Button({
  kind = "plain",
  type = "button",
  unusable,
  isBusy = false,
  className = "",
  onClick,
  title,
  children,
  ...rest
}: ButtonProps): ReactNode {
  const isOff = unusable !== undefined || isBusy;
  return (
    <button
      {...rest}
      type={type}
      className={`button button-${kind} ${className}`}
      aria-disabled={isOff || undefined}
      aria-busy={isBusy || undefined}
      title={unusable ?? title}
      onClick={(event) => {
        if (isOff) event.preventDefault();
        else onClick?.(event);
      }}
    >
      {children}
    </button>
  );
}
